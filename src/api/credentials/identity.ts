import { createPrivateKey, X509Certificate } from 'node:crypto';
import { describeError, type Instant, instant, KubelingError } from '../../lib/index.ts';
import type { ApiFiles, KubeContext, Material } from '../kubeconfig/kubeconfig.ts';

/** A client certificate and its key. */
export interface ClientCertificate {
  readonly cert: string;
  readonly key: string;
  /** Where the certificate comes from, for messages: a file or a field of the kubeconfig. */
  readonly name: string;
  readonly expires: Instant;
}

/** The TLS settings of a connection: a change of any field requires a new connection. */
export interface TlsIdentity {
  readonly ca: { readonly pem: string; readonly name: string } | undefined;
  readonly client: ClientCertificate | undefined;
}

/**
 * Loads the TLS identity. Rejects with API_UNAVAILABLE if a file cannot be used, because it may
 * appear later, and with KUBECONFIG_INVALID for an embedded value.
 */
export async function readIdentity(context: KubeContext, files: ApiFiles): Promise<TlsIdentity> {
  const { ca, server } = context.cluster;
  if (server.protocol === 'http:') return { ca: undefined, client: undefined };
  const pair = context.user.certificate;
  return {
    ca: ca === undefined ? undefined : await readAuthority(ca, files),
    client: pair === undefined ? undefined : await readPair(pair, files),
  };
}

async function readAuthority(ca: Material, files: ApiFiles): Promise<TlsIdentity['ca']> {
  const pem = await textOf(ca, files);
  parse(ca, () => new X509Certificate(pem));
  return { pem, name: ca.name };
}

async function readPair(
  pair: { readonly cert: Material; readonly key: Material },
  files: ApiFiles,
): Promise<ClientCertificate> {
  const cert = await textOf(pair.cert, files);
  // A file that contains both certificate and key is read only once, so that the two match.
  const isOneFile = pair.key.kind === 'file' && pair.cert.kind === 'file' && pair.key.path === pair.cert.path;
  const key = isOneFile ? cert : await textOf(pair.key, files);
  return clientCertificate({ cert, key, certName: pair.cert, keyName: pair.key });
}

export interface PemPair {
  readonly cert: string;
  readonly key: string;
  readonly certName: Pick<Material, 'kind' | 'name'>;
  readonly keyName: Pick<Material, 'kind' | 'name'>;
}

/**
 * Checks that certificate and key belong together: while the files are replaced, one of them may be
 * new and the other old.
 */
export function clientCertificate({ cert, key, certName, keyName }: PemPair): ClientCertificate {
  const certificate = parse(certName, () => new X509Certificate(cert));
  const privateKey = parse(keyName, () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) {
    throw unusable(certName, `its key does not match ${keyName.name}`);
  }
  return { cert, key, name: certName.name, expires: instant(certificate.validToDate.getTime()) };
}

async function textOf(material: Material, files: ApiFiles): Promise<string> {
  if (material.kind === 'inline') return material.pem;
  try {
    return await files.readText(material.path);
  } catch (error) {
    throw unusable(material, describeError(error), error);
  }
}

function parse<T>(material: Pick<Material, 'kind' | 'name'>, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw unusable(material, describeError(error), error);
  }
}

function unusable(material: Pick<Material, 'kind' | 'name'>, why: string, cause?: unknown): KubelingError {
  const code = material.kind === 'file' ? 'API_UNAVAILABLE' : 'KUBECONFIG_INVALID';
  return new KubelingError(code, `Cannot use ${material.name} to reach the API server: ${why}`, {
    cause,
    details: { material: material.name },
  });
}

export function isSameIdentity(a: TlsIdentity, b: TlsIdentity): boolean {
  return a.ca?.pem === b.ca?.pem && a.client?.cert === b.client?.cert && a.client?.key === b.client?.key;
}
