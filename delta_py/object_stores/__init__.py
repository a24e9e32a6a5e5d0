"""Object stores (S3, Google Cloud Storage, Azure), and the function that opens the store of a URL.

In: a URL and options. Out: an `ObjectStore`, which sends its requests with the store's SDK.
"""
