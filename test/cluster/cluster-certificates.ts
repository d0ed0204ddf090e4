import { generateKeyPairSync } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import {
  type Authority,
  CertificateFolder,
  type CertificateWish,
  type KeyPair,
} from '../fakes/certificate-authority.ts';

/** How the user of a kubeconfig authenticates: a client certificate or a token. */
export type Credential = KeyPair | { readonly token: string };

/** The first address of the service range, at which pods reach the API server. */
const serviceAddress = '10.96.0.1';
const serverNames = [
  'localhost',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
];

/**
 * Creates the keys and certificates of one cluster, all signed by one CA, as files for its
 * programs.
 */
export class ClusterCertificates implements Disposable {
  readonly #folder: CertificateFolder;
  readonly #authority: Authority;

  constructor() {
    this.#folder = new CertificateFolder();
    this.#authority = this.#folder.authority('/CN=kubernetes');
    // The folder is new, so its only key file is that of the CA.
    const key = readdirSync(this.#folder.directory).filter((name) => name.endsWith('.key'));
    this.#write('ca.key', this.#folder.read(key.join()));
    this.#write('ca.crt', this.#authority.pem);
    const server = { subject: '/CN=kube-apiserver', use: 'serverAuth', san: serverSan() } as const;
    this.#writePair('server', this.#authority.issue(server));
    this.#writePair('kubelet-client', this.issue({ subject: '/CN=kube-apiserver-kubelet-client' }));
    this.#writeServiceAccountKeys();
  }

  get ca(): string {
    return this.#authority.pem;
  }

  file(name: string): string {
    return join(this.#folder.directory, name);
  }

  issue(options: CertificateWish): KeyPair {
    return this.#authority.issue(options);
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]();
  }

  #writeServiceAccountKeys(): void {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#write('sa.key', privateKey.export({ type: 'sec1', format: 'pem' }).toString());
    this.#write('sa.pub', publicKey.export({ type: 'spki', format: 'pem' }).toString());
  }

  #writePair(name: string, { cert, key }: KeyPair): void {
    this.#write(`${name}.crt`, cert);
    this.#write(`${name}.key`, key);
  }

  #write(name: string, text: string): void {
    writeFileSync(this.file(name), text, { mode: 0o600 });
  }
}

/**
 * Writes a kubeconfig that contains its certificates, as kubeadm does; only its owner may read it.
 */
export function writeKubeconfig(
  path: string,
  { url: server, ca }: { readonly url: string; readonly ca: string },
  credential: Credential,
): void {
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': base64(ca) } }],
    users: [{ name: 'user', user: userOf(credential) }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'user' } }],
    'current-context': 'test',
  };
  writeFileSync(path, stringify(config), { mode: 0o600 });
}

/**
 * The subject alternative names of the server certificate, including the addresses of the machine,
 * because the server may listen on them.
 */
function serverSan(): string {
  const addresses = ['127.0.0.1', serviceAddress, ...machineAddresses()];
  return [...serverNames.map((name) => `DNS:${name}`), ...addresses.map((ip) => `IP:${ip}`)].join(',');
}

/**
 * Returns the IPv4 addresses by which pods and other hosts reach the machine, without those of pod
 * bridges.
 */
export function machineAddresses(): readonly string[] {
  return Object.entries(networkInterfaces())
    .filter(([name]) => !/^(klg|veth|docker|cni|kbr)/.test(name))
    .flatMap(([, addresses]) => addresses ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => address);
}

function userOf(credential: Credential) {
  if ('token' in credential) return { token: credential.token };
  const { cert, key } = credential;
  return { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) };
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
