import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildImage, imageArchitecture } from '../src/containerd/index.ts';
import { freePort } from './free-ports.ts';
import { eventually } from './kubeling-node.ts';

const execute = promisify(execFile);

export const registryUser = 'alice';
export const registryPassword = 'sesame';
/**
 * An htpasswd line with the bcrypt hash of the password, precomputed because Node.js has no bcrypt.
 */
const htpasswd = `${registryUser}:$2b$05$abcdefghijklmnopqrstuuKcS.CYWVYVaLiiCKrrc0A5s3mGesJ9O\n`;

export interface RegistryOptions {
  /** The directory for the registry's files; the caller removes it. */
  readonly directory: string;
  readonly access?: 'anybody' | 'password';
  readonly transport?: 'http' | 'tls';
}

/** A real registry on loopback, in a process that can be stopped and started again. */
export class Registry implements AsyncDisposable {
  /** The registry's HOST:PORT, as in image names. */
  readonly host: string;
  readonly port: number;
  readonly #options: RegistryOptions;
  #process: ChildProcess | undefined;

  static async open(options: RegistryOptions): Promise<Registry> {
    await mkdir(join(options.directory, 'data'), { recursive: true });
    const registry = new Registry(options, await freePort());
    await writeFile(registry.#at('htpasswd'), htpasswd);
    if (options.transport === 'tls') await makeCertificates(options.directory);
    await writeFile(registry.#at('config.json'), JSON.stringify(registry.#config()));
    await registry.start();
    return registry;
  }

  private constructor(options: RegistryOptions, port: number) {
    this.#options = options;
    this.port = port;
    this.host = `127.0.0.1:${port}`;
  }

  /** The certificate file of the authority that signed the registry's certificate. */
  get authority(): string {
    return this.#at('authority/ca.crt');
  }

  async start(): Promise<void> {
    const child = spawn('docker-registry', ['serve', this.#at('config.json')], { stdio: 'ignore' });
    this.#process = child;
    await eventually('the registry to answer', async () => {
      if (child.exitCode !== null) throw new Error(`The registry process exited with ${child.exitCode}`);
      return (await isListening(this.port)) ? true : undefined;
    });
  }

  async stop(): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  }

  /**
   * Builds an image with busybox and the given number of random padding bytes, and pushes it;
   * returns the image name.
   */
  async push(path: string, paddingBytes = 0): Promise<string> {
    const name = `${this.host}/${path}`;
    const archive = this.#at('image.tar');
    await writeFile(archive, await testImage(name, paddingBytes));
    const tag = path.slice(path.lastIndexOf(':') + 1);
    const { access = 'anybody', transport = 'http', directory } = this.#options;
    const args = [
      ...(access === 'password' ? ['--dest-creds', `${registryUser}:${registryPassword}`] : []),
      ...(transport === 'tls'
        ? ['--dest-cert-dir', join(directory, 'authority')]
        : ['--dest-tls-verify=false']),
    ];
    const copy = [
      '--insecure-policy',
      'copy',
      '-q',
      ...args,
      `oci-archive:${archive}:${tag}`,
      `docker://${name}`,
    ];
    await execute('skopeo', copy);
    return name;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #at(name: string): string {
    return join(this.#options.directory, name);
  }

  #config(): object {
    const { access = 'anybody', transport = 'http' } = this.#options;
    const tls = { certificate: this.#at('registry.crt'), key: this.#at('registry.key') };
    const auth = { htpasswd: { realm: 'test', path: this.#at('htpasswd') } };
    return {
      version: '0.1',
      log: { level: 'error' },
      storage: { filesystem: { rootdirectory: this.#at('data') } },
      http: { addr: this.host, ...(transport === 'tls' ? { tls } : {}) },
      ...(access === 'password' ? { auth } : {}),
    };
  }
}

/** Configures containerd for a registry with a hosts.toml in a separate directory. */
export async function allowRegistry(
  certsDir: string,
  host: string,
  options: { readonly scheme: 'http' | 'https'; readonly ca?: string },
): Promise<void> {
  const directory = join(certsDir, host);
  await mkdir(directory, { recursive: true });
  const url = JSON.stringify(`${options.scheme}://${host}`);
  const ca = options.ca === undefined ? '' : `  ca = ${JSON.stringify(options.ca)}\n`;
  const text = `server = ${url}\n\n[host.${url}]\n  capabilities = ["pull", "resolve"]\n${ca}`;
  await writeFile(join(directory, 'hosts.toml'), text);
}

async function isListening(port: number): Promise<boolean> {
  return await fetch(`http://127.0.0.1:${port}/v2/`).then(
    () => true,
    // A registry with TLS closes the plain HTTP connection, which also proves that it listens.
    (error) => !JSON.stringify(error.cause ?? {}).includes('ECONNREFUSED'),
  );
}

/** The padding is random, so that no two images share a layer. */
async function testImage(name: string, paddingBytes: number): Promise<Uint8Array> {
  const program = await readFile('/bin/busybox');
  return buildImage({
    name,
    architecture: imageArchitecture(process.arch),
    files: [
      { path: 'bin/busybox', kind: 'file', mode: 0o755, data: program },
      { path: 'bin/sh', kind: 'link', target: 'busybox' },
      { path: 'bin/sleep', kind: 'link', target: 'busybox' },
      { path: 'tmp', kind: 'directory', mode: 0o1777 },
      { path: 'padding', kind: 'file', mode: 0o644, data: randomBytes(16 + paddingBytes) },
    ],
    command: ['sh'],
    env: { PATH: '/bin' },
  });
}

async function makeCertificates(directory: string): Promise<void> {
  // The authority's certificate has a separate directory, because some clients use every key file
  // beside it.
  await mkdir(join(directory, 'authority'));
  const run = (...args: readonly string[]) => execute('openssl', args, { cwd: directory });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  await run(
    'req',
    '-x509',
    ...key,
    '-keyout',
    'ca.key',
    '-out',
    'authority/ca.crt',
    '-subj',
    '/CN=test authority',
  );
  await run(
    'req',
    ...key.slice(0, 5),
    '-keyout',
    'registry.key',
    '-out',
    'registry.csr',
    '-subj',
    '/CN=registry',
  );
  await writeFile(join(directory, 'names'), 'subjectAltName=IP:127.0.0.1\n');
  const sign = [
    '-CA',
    'authority/ca.crt',
    '-CAkey',
    'ca.key',
    '-CAcreateserial',
    '-days',
    '2',
    '-extfile',
    'names',
  ];
  await run('x509', '-req', '-in', 'registry.csr', ...sign, '-out', 'registry.crt');
}
