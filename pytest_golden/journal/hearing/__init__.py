"""How a signal is taken in: known again, routed, and left where it belongs; and how orphans find a place later."""
