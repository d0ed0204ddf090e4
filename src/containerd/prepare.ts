import { chmod, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  KubelingError,
  type ProcessTable,
  type Random,
  readFileIfExists,
  writeFileAtomic,
} from '../lib/index.ts';
import { cniConflist } from './cni.ts';
import { type CgroupDriver, type ConfigFacts, containerdConfig, type Snapshotter } from './config.ts';
import { type Instance, readInstance, writeInstance } from './instance-file.ts';
import { directoryHash, type Layout } from './layout.ts';
import { isSystemdFirst, mayLowerOomScore, type Run, type Tools } from './machine.ts';
import { canMountOverlay, unmountBelow } from './mounts.ts';
import { imageArchitecture } from './oci-image.ts';
import { removeTraces } from './own-process.ts';
import { chooseSubnet, formatSubnet, parseFibTrie, parseRouteTable, parseSubnet } from './subnet.ts';
import { type ContainerdVersion, checkSupported, parseContainerdVersion } from './version.ts';

export interface PrepareDeps {
  readonly layout: Layout;
  readonly tools: Tools;
  readonly run: Run;
  readonly random: Random;
  readonly processes: ProcessTable;
  readonly procDir: string;
  readonly sysDir: string;
  readonly cgroupDriver: CgroupDriver;
  /** The pod subnet requested by the user; a free one is chosen if undefined. */
  readonly subnet: string | undefined;
}

export interface Prepared {
  readonly version: ContainerdVersion;
  readonly instance: Instance;
}

/**
 * Creates the directories and files of containerd. Must be called while the lock is held and no
 * containerd is running.
 */
export async function prepare(deps: PrepareDeps, signal: AbortSignal): Promise<Prepared> {
  const { layout, tools, run } = deps;
  const version = parseContainerdVersion((await run(tools.containerd, ['--version'], signal)).stdout);
  checkSupported(version);
  if (deps.subnet !== undefined) parseSubnet(deps.subnet);
  const before = await readInstance(layout.instanceFile);
  const bootId = await deps.processes.bootId();
  if (before.bootId !== undefined && before.bootId !== bootId) await wipeState(deps, signal);
  await removeTraces(layout);
  await makeDirectories(layout);
  const instance = {
    subnet: deps.subnet ?? before.subnet ?? (await findSubnet(deps)),
    snapshotter: await chooseSnapshotter(before.snapshotter, deps, signal),
    bootId,
  };
  await writeInstance(layout.instanceFile, instance);
  await writeConfigs(deps, version, instance);
  return { version, instance };
}

/** Removes state of an earlier boot, which refers to processes and mounts that no longer exist. */
async function wipeState(deps: PrepareDeps, signal: AbortSignal): Promise<void> {
  const { problems } = await unmountBelow(deps.layout.state, deps, signal);
  if (problems.length > 0) {
    throw new KubelingError(
      'CONTAINERD_START',
      `Cannot clear the state of an earlier boot: ${problems.join('; ')}`,
    );
  }
  await rm(deps.layout.state, { recursive: true, force: true });
}

/**
 * Directories that only root may access, because they contain container specs with environment
 * variables, and image content.
 */
const closedDirectories = ['io.containerd.metadata.v1.bolt', 'io.containerd.content.v1.content'] as const;

async function makeDirectories(layout: Layout): Promise<void> {
  const { root, state, cniConfDir, ipamDir, registryConfig } = layout;
  for (const dir of [root, state, cniConfDir, ipamDir, registryConfig]) {
    // Other users may traverse the directory, because containers in a user namespace need it.
    await mkdir(dir, { recursive: true, mode: 0o711 });
  }
  for (const name of closedDirectories) {
    const dir = join(root, name);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    // Sets the mode of a directory that an earlier containerd may have created.
    await chmod(dir, 0o700);
  }
}

/**
 * Chooses the subnet when the persisted one was lost: that of the existing bridge of this data
 * directory, or a free subnet if there is no bridge.
 */
async function findSubnet({ layout, procDir }: PrepareDeps): Promise<string> {
  const routes = parseRouteTable((await readFileIfExists(join(procDir, 'net/route'))) ?? '');
  const ours = routes.find((route) => route.device === layout.network);
  if (ours !== undefined) return formatSubnet(ours);
  const everything = parseFibTrie((await readFileIfExists(join(procDir, 'net/fib_trie'))) ?? '');
  return formatSubnet(chooseSubnet(directoryHash(layout.dataDir), [...routes, ...everything]));
}

/**
 * Chooses overlayfs if possible, but never replaces a native snapshotter, because images unpacked
 * for one snapshotter are missing in the other.
 */
async function chooseSnapshotter(
  before: Snapshotter | undefined,
  deps: PrepareDeps,
  signal: AbortSignal,
): Promise<Snapshotter> {
  if (before === 'native') return 'native';
  return (await canMountOverlay(deps.layout.root, deps, signal)) ? 'overlayfs' : 'native';
}

async function writeConfigs(
  deps: PrepareDeps,
  version: ContainerdVersion,
  instance: Instance,
): Promise<void> {
  const { layout, tools } = deps;
  const facts: ConfigFacts = {
    version,
    architecture: imageArchitecture(process.arch),
    cniBinDir: tools.cniBinDir,
    runc: tools.runc,
    crun: tools.crun,
    snapshotter: instance.snapshotter,
    cgroupDriver: (await isSystemdFirst(deps.procDir)) ? deps.cgroupDriver : 'cgroupfs',
    oomScore: (await mayLowerOomScore(deps.procDir)) ? 'free' : 'restricted',
  };
  const { network, ipamDir } = layout;
  const rules = tools.iptables === undefined ? 'unspecified' : 'iptables';
  const conflist = cniConflist({ network, subnet: instance.subnet, ipamDir, rules });
  await writeFileAtomic(layout.config, containerdConfig(layout, facts), { mode: 0o600 });
  await writeFileAtomic(layout.cniConfFile, conflist, { mode: 0o644 });
}
