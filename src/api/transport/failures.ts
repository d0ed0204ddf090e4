import { describeError, type ErrorCode, type Instant, KubelingError } from '../../lib/index.ts';
import { systemCodeOf } from '../client/retry.ts';
import type { Access } from '../credentials/credentials.ts';

/** The fields of the server's certificate that are used in error messages. */
export interface ServerCertificateInfo {
  readonly subject: string;
  readonly expires: string;
  readonly validFrom: string;
}

export interface TransportFailure {
  /** The request, for example "get pods/web". */
  readonly what: string;
  readonly access: Access;
  readonly cause: unknown;
  readonly peer: ServerCertificateInfo | undefined;
  readonly now: Instant;
}

const untrusted: ReadonlySet<string | undefined> = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
]);

/** Matches TLS alerts of a server that requires a client certificate or rejects ours. */
const refusedIdentity =
  /ALERT_(?:CERTIFICATE_\w+|BAD_CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED|UNSUPPORTED_CERTIFICATE|HANDSHAKE_FAILURE)/;
const notTls = /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST/;

/**
 * Creates the error for a request without a response; its details have `host` and the `systemCode`
 * of the cause.
 */
export function transportError(failure: TransportFailure): KubelingError {
  if (failure.cause instanceof KubelingError) return failure.cause;
  const { what, access, cause } = failure;
  const systemCode = systemCodeOf(cause);
  const { host } = access.context.cluster.server;
  const { code, why } = explain(failure, systemCode);
  return new KubelingError(code, `Cannot ${what} at ${host}: ${why}`, {
    cause,
    details: { host, systemCode },
  });
}

interface Explanation {
  readonly code: ErrorCode;
  readonly why: string;
}

function explain(failure: TransportFailure, systemCode: string | undefined): Explanation {
  const { access, cause, peer } = failure;
  const description = `${systemCode} ${describeError(cause).toUpperCase().replaceAll(' ', '_')}`;
  if (refusedIdentity.test(description)) return { code: 'API_UNAUTHORIZED', why: refusedAs(failure) };
  if (notTls.test(description)) return { code: 'API_BAD_ANSWER', why: 'the server does not use TLS' };
  if (systemCode?.startsWith('HPE_')) return { code: 'API_BAD_ANSWER', why: 'the server does not use HTTP' };
  if (untrusted.has(systemCode)) return unavailable(describeDistrust(access, systemCode));
  if (systemCode === 'CERT_HAS_EXPIRED')
    return unavailable(`the server's certificate expired${dated('on', peer?.expires)}`);
  if (systemCode === 'CERT_NOT_YET_VALID')
    return unavailable(`the server's certificate begins${dated('on', peer?.validFrom, ' in the future')}`);
  // Some servers close the connection without an alert when they reject a client certificate, so an
  // expired client certificate is mentioned as a possible cause.
  const expired = expiryOf(access, failure.now);
  return unavailable(
    [describeError(cause), ...(expired === undefined ? [] : [expired])].join('; perhaps as '),
  );
}

function unavailable(why: string): Explanation {
  return { code: 'API_UNAVAILABLE', why };
}

function dated(word: string, date: string | undefined, otherwise = ''): string {
  return date === undefined ? otherwise : ` ${word} ${date}`;
}

function describeDistrust({ identity }: Access, systemCode: string | undefined): string {
  const authority = identity.ca === undefined ? 'any authority this machine trusts' : identity.ca.name;
  return `the server's certificate is not signed by ${authority} (${systemCode})`;
}

function refusedAs({ access, cause, now }: TransportFailure): string {
  const { client } = access.identity;
  if (client === undefined) return 'the server requires a client certificate, and the kubeconfig has none';
  return (
    expiryOf(access, now) ??
    `the server rejected the client certificate of ${client.name} (${describeError(cause)})`
  );
}

/** Returns a note that the client certificate has expired, as the likely cause of a rejection. */
export function expiryOf({ identity }: Access, now: Instant): string | undefined {
  const { client } = identity;
  if (client === undefined || client.expires > now) return undefined;
  return `the client certificate of ${client.name} expired on ${new Date(client.expires).toISOString()}`;
}
