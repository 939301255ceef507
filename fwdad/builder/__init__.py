"""The rule builder: source, lifting, dispatch, and the duals that programs run on."""
