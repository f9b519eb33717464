"""The fault test: six workers in four languages mint from one store while everything around them breaks.

Every ID is written down as soon as it is there. In the end no ID may occur twice, every worker must have gone on
after the last fault, and nothing may have hung or failed with an error that does not belong.
"""
