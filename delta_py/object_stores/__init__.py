"""Object stores (S3, Google Cloud Storage, Azure), and which store a URL means.

In: a URL and options. Out: an `ObjectStore`, over the requests of the store's SDK.
"""
