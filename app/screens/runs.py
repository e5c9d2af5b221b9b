"""Page runs."""
import streamlit as st
def show() -> None:
    st.html("<h1>runs</h1>")
