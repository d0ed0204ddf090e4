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

/** How a kubeconfig's user proves who it is. */
export type Credential = KeyPair | { readonly token: string };

/** The first address of the services' range: the API server's, as pods know it. */
const serviceAddress = '10.96.0.1';
const serverNames = [
  'localhost',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
];

/** Keys and certificates of one cluster, all vouched for by one authority, as files for its programs. */
export class ClusterCertificates implements Disposable {
  readonly #folder: CertificateFolder;
  readonly #authority: Authority;

  constructor() {
    this.#folder = new CertificateFolder();
    this.#authority = this.#folder.authority('/CN=kubernetes');
    // The folder is new: the only key in it is the authority's.
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

/** Self-contained, as kubeadm writes them; only its owner may read it. */
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

/** The machine's addresses too, for a server that is told to listen on more than loopback. */
function serverSan(): string {
  const addresses = ['127.0.0.1', serviceAddress, ...machineAddresses()];
  return [...serverNames.map((name) => `DNS:${name}`), ...addresses.map((ip) => `IP:${ip}`)].join(',');
}

/** By which others on the machine, such as pods, reach it; IPv4 only, and none of bridges of pods. */
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
