import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const suites = ['bookworm', 'trixie'] as const;
export type Suite = (typeof suites)[number];

/**
 * The packages required by the README, and CA certificates, without which neither apt nor npm can
 * verify a server.
 */
const included = ['nodejs', 'npm', 'git', 'ca-certificates'];

/**
 * Creates a tar archive with the essential and required packages of a Debian release, apt and the
 * packages required by the README.
 */
export function makeArchive(suite: Suite, archive: string): void {
  mkdirSync(dirname(archive), { recursive: true });
  const options = ['--variant=minbase', `--include=${included.join(',')}`, '--format=tar'];
  const done = spawnSync('mmdebstrap', [...options, '--', suite, `${archive}.new`], { stdio: 'inherit' });
  if (done.status !== 0) throw new Error(`Cannot create a root file system of ${suite} with mmdebstrap`);
  renameSync(`${archive}.new`, archive);
}

export function unpackArchive(archive: string, root: string): void {
  mkdirSync(root, { recursive: true });
  execFileSync('tar', ['-C', root, '--numeric-owner', '--xattrs', '-xpf', archive]);
}

const proxyVariables = ['http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'];
const certificateVariables = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'npm_config_cafile'];
const npmSettings = ['registry', 'cafile', 'proxy', 'https-proxy'];

/**
 * Copies to the root file system the settings by which this machine reaches its package registries:
 * proxies, the npm registry and trusted certificates. Files that are named by these settings are
 * copied to the same path.
 */
export function shareRegistryAccess(root: string, env: NodeJS.ProcessEnv): Record<string, string> {
  const shared: Record<string, string> = {};
  for (const name of [...proxyVariables, ...certificateVariables])
    if (env[name] !== undefined) shared[name] = env[name];
  for (const setting of npmSettings) {
    const value = spawnSync('npm', ['config', 'get', setting], { encoding: 'utf8' }).stdout.trim();
    if (value !== '' && value !== 'null' && value !== 'undefined') shared[npmVariable(setting)] = value;
  }
  for (const file of certificateVariables.map((name) => shared[name])) {
    if (file === undefined || !existsSync(file)) continue;
    mkdirSync(dirname(join(root, file)), { recursive: true });
    copyFileSync(file, join(root, file));
  }
  return shared;
}

function npmVariable(setting: string): string {
  return `npm_config_${setting.replaceAll('-', '_')}`;
}

/** The address at which slirp4netns serves DNS. */
const nameServer = '10.0.2.3';

export function writeResolver(root: string): void {
  writeFileSync(join(root, 'etc/resolv.conf'), `nameserver ${nameServer}\n`);
}
