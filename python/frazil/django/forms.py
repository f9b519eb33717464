"""A form's field for an ID."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

import frazil

from .fields import exact


class SnowflakeFormField(forms.Field):
    """An ID that a person or a script fills in: digits, 0 to 2^63 - 1; the cleaned value is an int, or None if it is not required.

    Other values are the validation error `invalid`, for example a float, a sign, spaces inside, or 1e18.
    """

    # A number of numpy cannot be compared with Django's empty list.
    empty_values = (None, "")
    widget = forms.TextInput
    default_error_messages = {"invalid": _("Enter an ID: digits only, 0 to 9223372036854775807.")}

    def to_python(self, value: Any) -> int | None:
        if isinstance(value, str):
            value = value.strip()
        if value in self.empty_values:
            return None
        try:
            return exact(value)
        except (frazil.errors.IdInvalidError, frazil.errors.WrongTypeError) as error:
            raise ValidationError(self.error_messages["invalid"], code="invalid") from error

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        # No <input type=number>, because a script reads its value as a rounded number.
        return {**super().widget_attrs(widget), "inputmode": "numeric"}
