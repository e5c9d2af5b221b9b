"""Page models."""
import streamlit as st
def show() -> None:
    st.html("<h1>models</h1>")
