"""What happens around a method: spec, events, recording, live readers, view and replay."""
