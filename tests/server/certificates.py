"""Certificates of the tests' own authorities, made like an operator's."""

import subprocess


def make(folder, name, authority=None, subject_alternative_names="IP:127.0.0.1,DNS:localhost", days=2):
    """Makes a certificate in NAME.crt and its key in NAME.key. Without an authority, the certificate is itself one."""
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


def revoke(folder, authority, *names):
    """Writes an authority's revocation list with these certificates into AUTHORITY.crl."""
    crt, key = folder / f"{authority}.crt", folder / f"{authority}.key"
    state, number, config, crl = (folder / f"{authority}.{end}" for end in ("index", "number", "cnf", "crl"))
    state.write_text("")
    number.write_text("01\n")
    own = {"database": state, "crlnumber": number, "certificate": crt, "private_key": key, "default_md": "sha256", "default_crl_days": 2}
    lines = [f"{name}={value}" for name, value in own.items()]
    config.write_text(
        "\n".join(["[ca]", "default_ca=own", "[own]", *lines, "crl_extensions=ext", "[ext]", "authorityKeyIdentifier=keyid", ""])
    )
    for name in names:
        subprocess.run(["openssl", "ca", "-config", config, "-revoke", folder / f"{name}.crt"], check=True, capture_output=True)
    subprocess.run(["openssl", "ca", "-config", config, "-gencrl", "-out", crl], check=True, capture_output=True)
    return crl
