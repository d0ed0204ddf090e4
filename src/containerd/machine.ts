import { constants } from 'node:fs';
import { access, readFile, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { type Clock, type CommandResult, KubelingError, readFileIfExists, runChecked } from '../lib/index.ts';
import { cniPluginDirs, cniPlugins } from './cni.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Runs a program and returns its output; rejects if it fails or exceeds the runner's deadline. */
export type Run = (file: string, args: readonly string[], signal: AbortSignal) => Promise<CommandResult>;

/** The paths of required programs; optional programs are looked up where they are used. */
export interface Tools {
  readonly containerd: string;
  readonly ctr: string;
  readonly runc: string;
  readonly crun: string | undefined;
  readonly ip: string | undefined;
  readonly iptables: string | undefined;
  readonly cniBinDir: string;
}

const usualDirs = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
const commandDeadlineMs = 60_000;

/** The environment variables that are passed on to containerd, its shims and the CNI plugins. */
const passedOn =
  /^(HOME|LANG|LC_.*|TZ|TMPDIR|SSL_CERT_FILE|SSL_CERT_DIR|https?_proxy|no_proxy|all_proxy|HTTPS?_PROXY|NO_PROXY|ALL_PROXY)$/;

/**
 * Returns the directories in which programs are searched. If a containerd is given by path, its
 * directory comes first, because its shim and client are there.
 */
export function programDirs(env: Environment, containerd: string | undefined): readonly string[] {
  const beside = containerd !== undefined && isAbsolute(containerd) ? [dirname(containerd)] : [];
  const own = (env['PATH'] ?? '').split(':').filter(isAbsolute);
  return [...new Set([...beside, ...own, ...usualDirs])];
}

export function childEnvironment(env: Environment, dirs: readonly string[]): Environment {
  const passed = Object.entries(env).filter(([name]) => passedOn.test(name));
  return { ...Object.fromEntries(passed), PATH: dirs.join(':') };
}

export function commandRunner(clock: Clock, env: Environment): Run {
  return (file, args, signal) =>
    runChecked({ file, args, env, clock, deadlineMs: commandDeadlineMs, maxOutputBytes: 16 << 20 }, signal);
}

export async function findProgram(name: string, dirs: readonly string[]): Promise<string | undefined> {
  for (const dir of dirs) {
    const path = join(dir, name);
    if (await isProgram(path)) return path;
  }
  return undefined;
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

/** Finds all programs, or reports all missing ones with their Debian packages in one error. */
export async function findTools(dirs: readonly string[], given: string | undefined): Promise<Tools> {
  const find = (name: string) => findProgram(name, dirs);
  const [ctr, shim, runc] = [await find('ctr'), await find('containerd-shim-runc-v2'), await find('runc')];
  const containerd = given === undefined ? await find('containerd') : await existing(given);
  const cniBinDir = await findCniDir(cniPluginDirs);
  if (!containerd || !ctr || !shim || !runc || !cniBinDir) {
    throw missingTools([
      ...(containerd ? [] : [given ?? 'containerd (package containerd)']),
      ...(ctr ? [] : ['ctr (package containerd)']),
      ...(shim ? [] : ['containerd-shim-runc-v2 (package containerd)']),
      ...(runc ? [] : ['runc (package runc)']),
      ...(cniBinDir ? [] : [missingPlugins()]),
    ]);
  }
  const [crun, ip, iptables] = [await find('crun'), await find('ip'), await find('iptables')];
  return { containerd, ctr, runc, crun, ip, iptables, cniBinDir };
}

async function existing(path: string): Promise<string | undefined> {
  return (await isProgram(path)) ? path : undefined;
}

function missingTools(missing: readonly string[]): KubelingError {
  return new KubelingError(
    'CONTAINERD_TOOLS',
    `Cannot run a private containerd as this machine lacks: ${missing.join('; ')}`,
    { details: { missing } },
  );
}

function missingPlugins(): string {
  return `the CNI plugins ${cniPlugins.join(', ')}, together in one of ${cniPluginDirs.join(', ')} (package containernetworking-plugins)`;
}

/** Returns the first directory that contains all required CNI plugins. */
export async function findCniDir(dirs: readonly string[]): Promise<string | undefined> {
  for (const dir of dirs) {
    const found = await Promise.all(cniPlugins.map((name) => isProgram(join(dir, name))));
    if (found.every((isThere) => isThere)) return dir;
  }
  return undefined;
}

const sysResource = 24n;

/** Whether this process may set an oom_score_adj lower than its own. */
export async function mayLowerOomScore(procDir: string): Promise<boolean> {
  const status = await readFile(join(procDir, 'self/status'), 'utf8');
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0';
  return ((BigInt(`0x${effective}`) >> sysResource) & 1n) === 1n;
}

export async function isSystemdFirst(procDir: string): Promise<boolean> {
  return (await readFileIfExists(join(procDir, '1/comm')))?.trim() === 'systemd';
}
