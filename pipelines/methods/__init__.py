"""The methods. `registry` lists them; a folder or a file beside it is one of them."""
