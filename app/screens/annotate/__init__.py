"""The Annotate page: sessions made, led, labelled, decided and read."""
