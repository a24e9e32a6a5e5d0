"""The cache on this machine's disk, which processes of one user share.

In: objects of remote stores, and values derived from them. Out: their copies, if the object still has the same content.
"""
