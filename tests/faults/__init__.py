"""The fault test: six workers in four languages mint from one store while everything around them breaks.

Every ID is written down as soon as it is minted. At the end, no ID may occur twice, and every worker must have continued
after the last fault. Nothing may have hung, or failed with an unexpected error.
"""
