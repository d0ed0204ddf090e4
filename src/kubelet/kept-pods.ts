import { posix } from 'node:path';
import { mountPoints, PodDirectories, PodNotebook, podsDirOf } from '../checkpoints/index.ts';
import { type PluginHandler, PluginRegistry } from '../plugins/index.ts';
import type { Pod, PodJournal, PodUid } from '../pods/index.ts';
import { matchesNodeSelector } from '../resources/index.ts';
import { CrashBackoff, idsPerBlock, podField, resourceField, UserNamespaces } from '../runtime/index.ts';
import {
  BlockVolumes,
  ClaimVolumes,
  type ClaimVolumesDeps,
  type CsiApi,
  CsiDrivers,
  CsiNodeUpdates,
  CsiVolumes,
  csiMetrics,
  EmptyDirQuotas,
  Expansions,
  GroupNews,
  LocalDisks,
  LocalVolumes,
  localPlugin,
  MemoryEmptyDirs,
  NfsVolumes,
  PayloadVolumes,
  Renewals,
  reconstructionMetrics,
  type StorageObserver,
  storageMetrics,
  timed,
  VolumeManager,
} from '../volumes/index.ts';
import { allocatableOf } from './allocatable.ts';
import { csiApi } from './csi-link.ts';
import type { KubeletDeps } from './kubelet-deps.ts';
import type { NodeJournal } from './node-journal.ts';
import type { KubeletSettings } from './settings.ts';

export const bootFile = '/proc/sys/kernel/random/boot_id';

export interface KeptPodsDeps
  extends Pick<KubeletDeps, 'clock' | 'random' | 'logger' | 'machine' | 'cluster' | 'metrics'> {
  readonly journal: Pick<PodJournal, 'event'>;
  readonly node: Pick<NodeJournal, 'event' | 'trouble' | 'mended'>;
  /** Who knows the drivers of resource claims; there are none unless given. */
  readonly claimDrivers?: PluginHandler | undefined;
  /** Those who register with their sockets like drivers do. */
  readonly devices?: PluginHandler | undefined;
  /** Something the pod waits for has come, or may have come after this long. */
  readonly lookAgain: (uid: PodUid, delayMs?: number) => void;
}

/** What of pods outlives the kubelet: their directories, and all that is in there. */
export class KeptPods {
  readonly directories: PodDirectories;
  readonly users: UserNamespaces;
  readonly volumes: VolumeManager;
  readonly notes: PodNotebook;
  /** Undefined on a machine without plugins. */
  readonly csi: CsiVolumes | undefined;
  readonly plugins: PluginRegistry | undefined;
  /** Undefined also on a node without an API server. */
  readonly csiUpdates: CsiNodeUpdates | undefined;
  /** Noted with the pod, so that it goes on where it was. */
  readonly crashBackoff: CrashBackoff;
  readonly #clock: KeptPodsDeps['clock'];
  readonly #quotas: EmptyDirQuotas;

  constructor(settings: KubeletSettings, deps: KeptPodsDeps) {
    const { clock, random, logger, machine, journal } = deps;
    const { files, volumeParts, volumeFiles } = machine;
    const podsDir = podsDirOf(settings.rootDir);
    const observe = storageMetrics(deps.metrics);
    const filled = filledVolumes(settings, podsDir, deps, observe);
    const inMemory = memoryEmptyDirs(settings, podsDir, deps, observe);
    this.#clock = clock;
    this.#quotas = new EmptyDirQuotas({
      quotas: machine.directoryQuotas,
      wish: settings.emptyDirQuota ?? 'off',
      rootDir: settings.rootDir,
      node: deps.node,
      logger,
    });
    const directories = new PodDirectories(settings.rootDir, files, () => mountPoints(machine), {
      unbind: (directory, inner) => volumeParts.unbind(directory, inner),
      unfill: async (uid, inner) => {
        await filled?.remove(uid, inner);
        await inMemory?.remove(uid, inner);
        await this.csi?.remove(uid, inner);
        await nfs?.remove(uid, inner);
        await claimed.remove(uid, inner);
      },
      removeTree: volumeFiles && ((directory) => volumeFiles.removeTree(directory)),
      unmountInside: volumeFiles && ((directory, inner) => volumeFiles.unmountInside(directory, inner)),
      release: (names, inner) => this.#quotas.release(names, inner),
    });
    this.directories = directories;
    this.users = new UserNamespaces({
      logger,
      files,
      podsDir,
      idsPerPod: settings.idsPerPod ?? idsPerBlock,
      ids: settings.userIds,
    });
    this.notes = new PodNotebook({
      clock,
      logger,
      files,
      directories,
      readBoot: () => machine.readFile(bootFile),
    });
    const block = blockVolumes(settings.rootDir, deps, observe);
    const api = deps.cluster && csiApi(deps.cluster);
    const { nodeName } = settings;
    const expansions = new Expansions({ nodeName, api, clock, journal, observe });
    const groupNews: GroupTeller = (pod, volume) => new GroupNews({ clock, journal, logger }, pod, volume);
    const shared = { notes: this.notes, observe, api, expansions, block, groupNews };
    const { csi, plugins, updates } = driverVolumes(settings, podsDir, deps, shared) ?? {};
    this.csi = csi;
    this.csiUpdates = updates;
    this.plugins = plugins;
    const nfs = nfsVolumes(settings, podsDir, deps);
    const others = { csi, csiBlock: csi?.devices, nfs, block, expansions, groupNews, observe };
    const claimed = claimVolumes(settings.rootDir, deps, this.notes, others);
    this.volumes = new VolumeManager(directories, files, journal, {
      filled,
      inMemory,
      claimed,
      csi,
      nfs,
      times: { clock, random, observe },
      renewals: new Renewals({ clock, random, lookAgain: deps.lookAgain }),
      limit: this.#quotas.limit,
    });
    this.crashBackoff = new CrashBackoff({
      random,
      maxMs: settings.maxRestartWaitMs,
      persist: (uid, entries) => this.notes.restarted(uid, entries),
    });
  }

  /** What earlier kubelets have noted; before anything is done to a pod. */
  async open(signal: AbortSignal): Promise<void> {
    await Promise.all([this.notes.open(), this.users.restore(), this.#quotas.open(signal)]);
    this.crashBackoff.restore(this.notes.restarts(), this.#clock.now());
  }

  /** Back-offs that are over need not be remembered. */
  collectBackoffs(): void {
    this.crashBackoff.collect(this.#clock.now());
  }
}

/** Undefined on a machine that gives no access to the files of volumes. */
function filledVolumes(
  settings: KubeletSettings,
  podsDir: string,
  { clock, random, machine: { volumeFiles: files }, cluster: api }: KeptPodsDeps,
  observe: StorageObserver,
): PayloadVolumes | undefined {
  if (files === undefined) return undefined;
  const allocatable = () => allocatableOf(settings, api?.node());
  return new PayloadVolumes({
    podsDir,
    api,
    downward: {
      // Addresses are not among what files may tell.
      field: (pod, selector) => podField(pod, selector, { podIps: [], hostIps: [] }),
      resource: (pod, container, selector) => resourceField(pod, container, selector, allocatable()),
    },
    files,
    clock,
    random,
    allocatable,
    observe,
  });
}

/** Undefined as above. */
function memoryEmptyDirs(
  settings: KubeletSettings,
  podsDir: string,
  { clock, machine: { volumeFiles: files }, cluster }: KeptPodsDeps,
  observe: StorageObserver,
): MemoryEmptyDirs | undefined {
  if (files === undefined) return undefined;
  const allocatable = () => allocatableOf(settings, cluster?.node());
  return new MemoryEmptyDirs({ podsDir, files, clock, allocatable, observe });
}

/** Undefined as above. */
function nfsVolumes(
  { deadVolumes }: KubeletSettings,
  podsDir: string,
  { clock, random, node, machine: { volumeFiles: files, networkMounts: mounts } }: KeptPodsDeps,
): NfsVolumes | undefined {
  if (files === undefined || mounts === undefined) return undefined;
  const detached = (place: string, why: string) => {
    const message = `The volume at ${place} was detached as its server does not answer; who has files of it open may still write to them: ${why}`;
    node.event({ type: 'Warning', reason: 'DeadVolumeDetached', message });
  };
  const asked = deadVolumes === 'detach' ? { detached } : {};
  return new NfsVolumes({ podsDir, files, mounts, clock, random, ...asked });
}

/** Undefined on a machine that gives no access to its devices. */
function blockVolumes(
  rootDir: string,
  { clock, machine: { volumeFiles: files, blockDevices: devices } }: KeptPodsDeps,
  observe: StorageObserver,
): BlockVolumes | undefined {
  if (files === undefined || devices === undefined) return undefined;
  return new BlockVolumes({ rootDir, podsDir: podsDirOf(rootDir), files, devices, clock, observe });
}

function claimVolumes(
  rootDir: string,
  { clock, machine, cluster, journal }: KeptPodsDeps,
  notes: PodNotebook,
  { groupNews, observe, ...others }: OthersOfClaims,
): ClaimVolumes {
  const { volumeFiles: files, disks } = machine;
  const timedWalk = (work: () => Promise<void>) =>
    timed({ clock, observe }, 'volume_apply_access_control', [localPlugin], work);
  const walks = { groupNews, timed: timedWalk };
  const onDisks = files && disks && new LocalDisks({ rootDir, files, disks, clock, observe });
  const podsDir = podsDirOf(rootDir);
  return new ClaimVolumes({
    claims: cluster?.claims,
    local: files && new LocalVolumes({ podsDir, files, clock, ...walks, disks: onDisks }),
    volumeEvent: cluster?.volumeEvent,
    ...others,
    hostFiles: machine.files,
    judgeNode: (required) => {
      const node = cluster?.node();
      if (node === undefined) return 'unknown';
      return matchesNodeSelector(required, node) ? 'this' : 'others';
    },
    notes: notes.volumes,
    clock,
    journal,
  });
}

type GroupTeller = (pod: Pod, volume: string) => GroupNews;

interface OthersOfClaims extends Pick<ClaimVolumesDeps, 'csi' | 'csiBlock' | 'nfs' | 'block' | 'expansions'> {
  readonly groupNews: GroupTeller;
  readonly observe: StorageObserver;
}

interface SharedByVolumes {
  readonly notes: PodNotebook;
  readonly groupNews: GroupTeller;
  readonly observe: StorageObserver;
  readonly api: CsiApi | undefined;
  readonly expansions: Expansions;
  readonly block: BlockVolumes | undefined;
}

interface DriverVolumes {
  readonly csi: CsiVolumes;
  readonly plugins: PluginRegistry;
  readonly updates: CsiNodeUpdates | undefined;
}

/** Undefined on a machine without plugins or access to the files of volumes. */
function driverVolumes(
  { rootDir, nodeName, selinux, attaching }: KubeletSettings,
  podsDir: string,
  deps: KeptPodsDeps,
  { notes, observe, api, expansions, block, groupNews }: SharedByVolumes,
): DriverVolumes | undefined {
  const { clock, random, logger, machine, cluster, journal, lookAgain } = deps;
  const { volumeFiles: files, plugins: host, disks } = machine;
  if (files === undefined || host === undefined) return undefined;
  const drivers = new CsiDrivers({
    open: (socket) => host.open(socket),
    clock,
    logger,
    observe: csiMetrics(deps.metrics),
    teller: cluster?.csiNode,
    refused: (plugin, why) => plugins.refuse(plugin, why),
    arrived: (driver) => {
      csi.arrived(driver);
      updates?.hint();
    },
  });
  const updates = api && new CsiNodeUpdates({ api, drivers, clock, logger });
  const csi = new CsiVolumes({
    rootDir,
    podsDir,
    nodeName,
    attaching,
    drivers,
    selinux,
    api,
    files,
    clock,
    random,
    logger,
    journal,
    observe,
    expansions,
    groupNews,
    otherMounts: disks && ((directory) => disks.otherMounts(directory)),
    hideDevices: async (uid, signal) => await block?.remove(uid, signal),
    reconstruction: reconstructionMetrics(deps.metrics),
    bootId: async () => (await machine.readFile(bootFile).catch(() => '')).trim(),
    notedVolume: (uid, name) => {
      const found = Object.values(notes.volumes.of(uid)).find((volume) => volume.name === name);
      return found?.source.kind === 'csi' ? found.source : undefined;
    },
    isNoted: (driver, handle, besides) =>
      notes.volumes
        .others(besides)
        .some(({ source }) => source.kind === 'csi' && source.driver === driver && source.handle === handle),
    notedHandles: (driver) =>
      notes.volumes
        .others(undefined)
        .flatMap(({ source }) => (source.kind === 'csi' && source.driver === driver ? [source.handle] : [])),
    limitReached: (driver) => updates?.refreshSoon(driver),
    lookAgain,
    inUseChanged: () => cluster?.volumesChanged(),
  });
  const directory = posix.join(rootDir, 'plugins_registry');
  const handlers = new Map<string, PluginHandler>([
    ['CSIPlugin', drivers],
    ...(deps.claimDrivers === undefined ? [] : [['DRAPlugin', deps.claimDrivers] as const]),
    ...(deps.devices === undefined ? [] : [['DevicePlugin', deps.devices] as const]),
  ]);
  const plugins = new PluginRegistry({ directory, host, handlers, clock, random, logger });
  return { csi, plugins, updates };
}
