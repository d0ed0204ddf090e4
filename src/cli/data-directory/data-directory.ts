import { mkdir, realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import {
  type FlagKind,
  flagError,
  KubelingError,
  readJsonFile,
  untrustedDirectory,
  writeJsonAtomic,
} from '../../lib/index.ts';

/** Where kubeling keeps its data unless told otherwise. */
export const defaultDataDirectory = '/var/lib/kubeling';

/** An empty one would be the directory we happen to be in: mostly it is a variable of a script that is not set. */
const directoryFlag: FlagKind<string> = {
  label: 'string',
  read(text) {
    if (text === '') throw flagError('a directory', text);
    return text;
  },
};

export const dataDirFlag = {
  kind: directoryFlag,
  help: 'The directory kubeling keeps its data in.',
  default: defaultDataDirectory,
};

/** The data directory of a kubeling that runs alone, and what lies at its top. */
export interface DataDirectory {
  readonly dataDir: string;
  /** Held by the one process that is up. */
  readonly lockFile: string;
  readonly stateFile: string;
  /** Says that the directory is ours, and what in it is not. */
  readonly claimFile: string;
  readonly selfCheckLogs: string;
  /** Manifests of pods are put here. */
  readonly manifests: string;
  /** The kubelet's own. */
  readonly rootDir: string;
  readonly podLogs: string;
  readonly log: string;
  /** Of the API: its store, its authority, and what it gave to others. */
  readonly api: string;
  /** For whoever uses the API; only our own user may read it. */
  readonly kubeconfig: string;
}

export function dataDirectoryAt(dataDir: string): DataDirectory {
  return {
    dataDir,
    lockFile: join(dataDir, 'up.lock'),
    stateFile: join(dataDir, 'up.json'),
    claimFile: join(dataDir, 'home.json'),
    selfCheckLogs: join(dataDir, 'self-check'),
    manifests: join(dataDir, 'manifests'),
    rootDir: join(dataDir, 'kubelet'),
    podLogs: join(dataDir, 'logs'),
    log: join(dataDir, 'kubeling.log'),
    api: join(dataDir, 'api'),
    kubeconfig: join(dataDir, 'kubeconfig'),
  };
}

/** What every request over loopback but those for health takes, below the kubelet's root directory; new with each run. */
export function tokenFile(rootDir: string): string {
  return join(rootDir, 'loopback-token');
}

/** Where a kubelet answers on loopback, below its root directory; what an earlier run left there may be wrong. */
export function portFile(rootDir: string): string {
  return join(rootDir, 'loopback-port');
}

/**
 * Opens the data directory and creates it if it is missing. Symbolic links are resolved here once, so that a directory has one name.
 * Rejects with HOME_UNUSABLE if another user could change it: manifests, sockets and keys in it are as good as root.
 */
export async function openDataDirectory(dataDir: string): Promise<DataDirectory> {
  const path = resolve(dataDir);
  try {
    // Pods with users of their own must get through to their root file systems; what others must not see is closed itself.
    await mkdir(path, { recursive: true, mode: 0o711 });
    return await trustedDataDirectory(await realpath(path));
  } catch (cause) {
    if (cause instanceof KubelingError) throw cause;
    throw new KubelingError('HOME_UNUSABLE', `Cannot use the data directory ${path}`, { cause });
  }
}

async function trustedDataDirectory(dataDir: string): Promise<DataDirectory> {
  const home = dataDirectoryAt(dataDir);
  for (const directory of [dataDir, home.manifests, home.rootDir, home.api, join(dataDir, 'containerd')]) {
    const why = await untrustedDirectory(directory);
    if (why === undefined) continue;
    throw new KubelingError(
      'HOME_UNUSABLE',
      `Cannot use the data directory ${dataDir} as ${why}: use a directory that only root can change`,
    );
  }
  return home;
}

/** Returns the data directory if it exists. Rejects with HOME_UNUSABLE if another user could have changed it. */
export async function findDataDirectory(dataDir: string): Promise<DataDirectory | undefined> {
  const path = await realpath(resolve(dataDir)).catch(() => undefined);
  return path === undefined ? undefined : await trustedDataDirectory(path);
}

/** What "up" leaves for "status" and "down" to know. */
export interface UpState {
  readonly runtime: 'private' | 'machine';
  readonly endpoint: string;
  /** Runtimes of the machine that were used before this one and may have pods of this home; none unless given. */
  readonly earlier?: readonly string[] | undefined;
  /** Whether this runtime ever passed the self-check: it may have pods then, and is kept. */
  readonly selfCheck?: 'passed' | undefined;
  /** Where the kubelet answers on loopback; undefined before it does. */
  readonly port?: number | undefined;
  /** Undefined for a kubeling without one. */
  readonly api?: { readonly url: string; readonly kubeconfig: string } | undefined;
}

export async function writeUpState(home: DataDirectory, state: UpState): Promise<void> {
  await writeJsonAtomic(home.stateFile, state, { mode: 0o600 });
}

/** Runtimes other than the one used now that may have pods of this home. */
export function earlierEndpoints(last: UpState | undefined, endpoint: string): readonly string[] {
  if (last === undefined) return [];
  const used = [...(last.earlier ?? []), ...(last.runtime === 'machine' ? [last.endpoint] : [])];
  return [...new Set(used)].filter((one) => one !== endpoint);
}

/** undefined when nothing was ever up here, or what was left cannot be read. */
export async function readUpState(home: DataDirectory): Promise<UpState | undefined> {
  return await readJsonFile(home.stateFile, { check: asUpState }).catch(() => undefined);
}

function asUpState(value: unknown): UpState {
  const { runtime, endpoint, earlier, port, api, selfCheck } = value as Partial<UpState>;
  if ((runtime === 'private' || runtime === 'machine') && typeof endpoint === 'string') {
    const hasApi = typeof api?.url === 'string' && typeof api.kubeconfig === 'string';
    return {
      runtime,
      endpoint,
      earlier: Array.isArray(earlier) ? earlier.filter((one) => typeof one === 'string') : [],
      port: typeof port === 'number' ? port : undefined,
      // An older kubeling wrote a port, and nothing else, once the check had passed.
      selfCheck: selfCheck === 'passed' || typeof port === 'number' ? 'passed' : undefined,
      ...(hasApi ? { api: { url: api.url, kubeconfig: api.kubeconfig } } : {}),
    };
  }
  throw new KubelingError('FILE_CORRUPT', 'it must name a runtime and an endpoint');
}

export function refuseWithoutRoot(command: string): void {
  if (process.getuid?.() === 0) return;
  throw new KubelingError('NOT_ROOT', `Cannot run "kubeling ${command}" as it must be started by root`);
}
