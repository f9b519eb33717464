"""Certificates of authorities of our own, as an operator makes them."""

import subprocess


def make(folder, name, authority=None, subject_alternative_names="IP:127.0.0.1,DNS:localhost", days=2):
    """A certificate in NAME.crt and its key in NAME.key; without an authority it is one itself."""
    crt, key = folder / f"{name}.crt", folder / f"{name}.key"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        str(days),
        "-subj",
        f"/CN={name}",
    ]
    if authority:
        command += ["-CA", folder / f"{authority}.crt", "-CAkey", folder / f"{authority}.key"]
        command += ["-addext", "basicConstraints=critical,CA:FALSE", "-addext", f"subjectAltName={subject_alternative_names}"]
    subprocess.run([*command, "-keyout", key, "-out", crt], check=True, capture_output=True)
    return crt, key
