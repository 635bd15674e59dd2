"""The doctor: finds what is wrong with a session as it is stored, says what that means, and sets right what can be.

`rows` looks at entries, sums and blobs, `views` at what a model gets, `work` at attempts, turns, numbers, index and events; `examination`
puts them together, and `repairs` changes something. Nothing here ever changes what an entry says.
"""
