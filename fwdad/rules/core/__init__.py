"""The machinery of rules: how one is written, registered, found, called, checked and transposed.

Functions come with their derivatives, from the files by area or from users; for a call, this
package returns the rule and its arguments. The layers above the rules use nothing else of them.
"""
