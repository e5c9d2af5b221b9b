"""Page drad."""
import streamlit as st
def show() -> None:
    st.html("<h1>drad</h1>")
