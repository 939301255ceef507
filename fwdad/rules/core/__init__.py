"""What rules are made of: how one is written, registered, found, called, checked and transposed.

In come functions with their derivatives, from the files by area or from users; out comes, for a
call, the rule and its arguments. Whoever stands above the rules sees this room only.
"""
