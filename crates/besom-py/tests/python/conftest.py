from hypothesis import settings

# Machines that build and test at the same time are slow now and then; no example is too slow for that.
settings.register_profile("besom", deadline=None)
settings.load_profile("besom")
