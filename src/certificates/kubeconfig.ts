import type { KeyPair } from '../protocols/x509/index.ts';
import type { KubeconfigCertificate } from './client-certificate.ts';
import type { CertificateFiles } from './files.ts';

/** A certificate, key or bundle: embedded in a kubeconfig, or in a file that it names. */
export type KubeconfigMaterial =
  | { readonly kind: 'inline'; readonly name: string; readonly pem: string }
  | { readonly kind: 'file'; readonly name: string; readonly path: string };

/**
 * The fields of a kubeconfig that this package needs; the kubeconfig of the API client has them.
 */
export interface KubeconfigView {
  readonly cluster: {
    readonly server: URL;
    readonly ca: KubeconfigMaterial | undefined;
    readonly tlsServerName: string | undefined;
    readonly verification: 'full' | 'skipped';
    readonly proxyUrl: URL | undefined;
  };
  readonly user: {
    readonly certificate: { readonly cert: KubeconfigMaterial; readonly key: KubeconfigMaterial } | undefined;
    readonly token: string | undefined;
    readonly tokenFile: string | undefined;
    readonly exec: unknown;
  };
}

/** Parses a kubeconfig. Rejects with the file name if the text is invalid. */
export type ParseKubeconfig = (source: {
  readonly file: string;
  readonly text: string;
}) => Promise<KubeconfigView>;

/** Returns the client certificate of a kubeconfig; undefined if it has none. */
export function kubeconfigCertificate({ user }: KubeconfigView): KubeconfigCertificate | undefined {
  const { cert, key } = user.certificate ?? {};
  if (cert === undefined || key === undefined) return undefined;
  if (cert.kind === 'file' && key.kind === 'file') {
    return { kind: 'files', certificateFile: cert.path, keyFile: key.path };
  }
  // If one of certificate and key is embedded and the other one is in a file, the pair counts as
  // missing; the API client reports this error.
  if (cert.kind === 'file' || key.kind === 'file') return undefined;
  return { kind: 'inline', certificate: cert.pem, key: key.pem, from: cert.name };
}

/** Returns the kubeconfig with the current client certificate instead of its own. */
export function withClientCertificate<T extends KubeconfigView>(context: T, pair: KeyPair | undefined): T {
  if (pair === undefined) return context;
  const inline = (pem: string) => ({ kind: 'inline', name: pair.from, pem }) as const;
  const certificate = { cert: inline(pair.certificatePem), key: inline(pair.keyPem) };
  return { ...context, user: { ...context.user, certificate } };
}

/**
 * Returns the text of the node's kubeconfig after bootstrapping: the cluster of the bootstrap
 * kubeconfig, and a user with the certificate at `pemPath`.
 */
export function nodeKubeconfig({ cluster }: KubeconfigView, pemPath: string): string {
  const { server, ca, tlsServerName, verification, proxyUrl } = cluster;
  const lines = (fields: Readonly<Record<string, string | boolean | undefined>>) =>
    Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `    ${name}: ${JSON.stringify(value)}`);
  return [
    'apiVersion: v1',
    'kind: Config',
    'clusters:',
    '- name: default-cluster',
    '  cluster:',
    ...lines({
      server: urlText(server),
      'certificate-authority': ca?.kind === 'file' ? ca.path : undefined,
      'certificate-authority-data':
        ca?.kind === 'inline' ? Buffer.from(ca.pem, 'latin1').toString('base64') : undefined,
      'insecure-skip-tls-verify': verification === 'skipped' ? true : undefined,
      'tls-server-name': tlsServerName,
      'proxy-url': proxyUrl === undefined ? undefined : urlText(proxyUrl),
    }),
    'users:',
    '- name: default-auth',
    '  user:',
    ...lines({ 'client-certificate': pemPath, 'client-key': pemPath }),
    'contexts:',
    '- name: default-context',
    '  context:',
    ...lines({ cluster: 'default-cluster', user: 'default-auth', namespace: 'default' }),
    'current-context: default-context',
    '',
  ].join('\n');
}

/** Returns the text of an embedded value or of its file; undefined if the file does not exist. */
export async function materialText(
  files: CertificateFiles,
  material: KubeconfigMaterial,
): Promise<string | undefined> {
  return material.kind === 'inline' ? material.pem : await files.read(material.path);
}

/** Formats a URL; a URL without a path gets no trailing slash. */
function urlText(url: URL): string {
  return url.pathname === '/' && url.search === '' ? url.href.replace(/\/$/, '') : url.href;
}
