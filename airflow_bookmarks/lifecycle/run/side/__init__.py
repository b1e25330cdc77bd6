"""What paused and disabled runs alone have: they take no lease, and are part of no history.

new_input  what is new to the bookmark, or all there is
window     the earlier runs that a pause reads again
walk       where a loop of such runs stands, in memory only
publish    the publish without a commit
record     the side record that is left of the run
"""
