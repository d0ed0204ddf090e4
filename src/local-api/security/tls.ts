import { constants } from 'node:crypto';
import type { SecureContextOptions, TlsOptions } from 'node:tls';
import type { Authorities } from './authorities.ts';

/** A client that resumed an earlier session would be trusted for what was true then. Renegotiation is of no use. */
const secureOptions = constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION;

function secureContext(authorities: Authorities): SecureContextOptions {
  const { certificatePem: cert, keyPem: key } = authorities.pairOf('serving');
  return { cert, key, ca: authorities.authorityPem, minVersion: 'TLSv1.2', secureOptions };
}

/** How the server shows itself, and that it asks clients for a certificate but takes those without one too. */
export function tlsOptions(authorities: Authorities): TlsOptions {
  return { ...secureContext(authorities), requestCert: true, rejectUnauthorized: false };
}

/** Serves with what certificates there are, from each change on; connections there are already go on as they are. */
export function followCertificates(
  server: { setSecureContext(options: SecureContextOptions): void },
  authorities: Authorities,
): Disposable {
  return authorities.onRotated((what) => {
    if (what.includes('authority') || what.includes('serving'))
      server.setSecureContext(secureContext(authorities));
  });
}
