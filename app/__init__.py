"""The screens: a Streamlit workbench, and nothing that is not a screen."""
