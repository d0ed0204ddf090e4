import { posix } from 'node:path';
import { mountPoints, type PodCheckpoints, PodDirectories, podsDirOf } from '../../checkpoints/index.ts';
import type { NodeJournal } from '../../journal/index.ts';
import { type PluginHandler, type PluginHost, PluginRegistry } from '../../plugins/index.ts';
import type { Pod, PodJournal, PodUid } from '../../pods/index.ts';
import { allocatableOf, matchesNodeSelector } from '../../resources/index.ts';
import { podField, resourceField } from '../../runtime/index.ts';
import {
  BlockVolumes,
  ClaimVolumes,
  type ClaimVolumesDeps,
  type CsiApi,
  CsiDrivers,
  CsiNodeUpdates,
  CsiVolumes,
  type CsiVolumesDeps,
  csiApi,
  csiMetrics,
  EmptyDirQuotas,
  Expansions,
  LocalDisks,
  LocalVolumes,
  localPlugin,
  MemoryEmptyDirs,
  NfsVolumes,
  OwnershipProgress,
  PayloadVolumes,
  RefreshRetries,
  reconstructionMetrics,
  type StorageObserver,
  storageMetrics,
  timed,
  VolumeManager,
  VolumeMetrics,
  volumeSpace,
} from '../../volumes/index.ts';
import type { BackgroundLoops } from '../background.ts';
import type { KubeletDeps } from '../kubelet-deps.ts';
import type { KubeletSettings } from '../settings.ts';
import type { KubeletResources } from './resources.ts';
import { bootFile, type KubeletState } from './state.ts';

export type KubeletVolumes = ReturnType<typeof createVolumes>;

/** The directories of pods with their volumes, and the registration of plugins with the kubelet. */
export function createVolumes(state: KubeletState, { claims, devices }: KubeletResources) {
  const { settings, deps, journal, node, pods } = state;
  const { clock, random, logger, machine, metrics } = deps;
  const observe = storageMetrics(metrics);
  const parts = {
    ...deps,
    journal,
    node,
    claimDrivers: claims?.drivers,
    devices,
    requestSync: (uid: PodUid, delayMs?: number) => state.requestSync(uid, delayMs),
  };
  const quotas = new EmptyDirQuotas({
    quotas: machine.directoryQuotas,
    mode: settings.emptyDirQuota ?? 'off',
    rootDir: settings.rootDir,
    node,
    logger,
  });
  const { csi, plugins, updates, ...others } = createVolumePlugins(state, parts, observe);
  const directories = createDirectories(settings, machine, { ...others, csi, quotas });
  const volumes = new VolumeManager(directories, machine.files, journal, {
    ...others,
    csi,
    times: { clock, random, observe },
    renewals: new RefreshRetries({ clock, random, requestSync: parts.requestSync }),
    limit: quotas.limit,
  });
  const space = volumeSpace(machine, csi);
  new VolumeMetrics({ clock, volumes, space, pods: () => pods.getPods() }).register(metrics);
  return {
    directories,
    volumes,
    /** The CSI volumes; undefined on a machine without plugins. */
    csi,
    space,
    loops: {
      ...(plugins && { plugins }),
      ...(csi && { 'CSI volumes': csi }),
      ...(updates && { 'limits of CSI drivers': updates }),
    } satisfies BackgroundLoops['restartable'],
    open: (signal: AbortSignal): Promise<void> => quotas.open(signal),
  };
}

/** Creates the plugins for all types of volumes, and the registration of CSI drivers. */
function createVolumePlugins(
  { settings, checkpoints }: KubeletState,
  parts: VolumeParts,
  observe: StorageObserver,
) {
  const { clock, journal, logger, cluster } = parts;
  const { rootDir, nodeName } = settings;
  const podsDir = podsDirOf(rootDir);
  const filled = filledVolumes(settings, podsDir, parts, observe);
  const inMemory = memoryEmptyDirs(settings, podsDir, parts, observe);
  const block = blockVolumes(rootDir, parts, observe);
  const api = cluster && csiApi(cluster);
  const expansions = new Expansions({ nodeName, api, clock, journal, observe });
  const reportOwnership: ReportOwnership = (pod, volume) =>
    new OwnershipProgress({ clock, journal, logger }, pod, volume);
  const shared = { checkpoints, observe, api, expansions, block, reportOwnership };
  const { csi, plugins, updates } = driverVolumes(settings, podsDir, parts, shared) ?? {};
  const nfs = nfsVolumes(settings, podsDir, parts);
  const others = { csi, csiBlock: csi?.devices, nfs, block, expansions, reportOwnership, observe };
  const claimed = claimVolumes(rootDir, parts, checkpoints, others);
  return { filled, inMemory, claimed, csi, nfs, plugins, updates };
}

interface RemovableVolumes
  extends Pick<ReturnType<typeof createVolumePlugins>, 'filled' | 'inMemory' | 'claimed' | 'csi' | 'nfs'> {
  readonly quotas: EmptyDirQuotas;
}

/** The directories of pods, whose removal also removes the volumes in them. */
function createDirectories(
  { rootDir }: KubeletSettings,
  machine: KubeletDeps['machine'],
  { filled, inMemory, csi, nfs, claimed, quotas }: RemovableVolumes,
): PodDirectories {
  const { files, volumeParts, volumeFiles } = machine;
  return new PodDirectories(rootDir, files, () => mountPoints(machine), {
    unbind: (directory, inner) => volumeParts.unbind(directory, inner),
    unfill: async (uid, inner) => {
      await filled?.remove(uid, inner);
      await inMemory?.remove(uid, inner);
      await csi?.remove(uid, inner);
      await nfs?.remove(uid, inner);
      await claimed.remove(uid, inner);
    },
    removeTree: volumeFiles && ((directory) => volumeFiles.removeTree(directory)),
    unmountInside: volumeFiles && ((directory, inner) => volumeFiles.unmountInside(directory, inner)),
    release: (names, inner) => quotas.release(names, inner),
  });
}

interface VolumeParts extends KubeletDeps {
  readonly journal: PodJournal;
  readonly node: Pick<NodeJournal, 'event'>;
  readonly claimDrivers: PluginHandler | undefined;
  readonly devices: PluginHandler | undefined;
  /** Syncs the pod after the delay. */
  readonly requestSync: (uid: PodUid, delayMs?: number) => void;
}

/**
 * Creates ConfigMap, Secret, projected and similar volumes; undefined on a machine that gives no
 * access to the files of volumes.
 */
function filledVolumes(
  settings: KubeletSettings,
  podsDir: string,
  { clock, random, machine: { volumeFiles: files }, cluster: api }: VolumeParts,
  observe: StorageObserver,
): PayloadVolumes | undefined {
  if (files === undefined) return undefined;
  const allocatable = () => allocatableOf(settings, api?.node());
  return new PayloadVolumes({
    podsDir,
    api,
    downward: {
      // No IP addresses are passed, because files of the downward API cannot contain them.
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

/**
 * Creates emptyDir volumes in memory; undefined on a machine that gives no access to the files of
 * volumes.
 */
function memoryEmptyDirs(
  settings: KubeletSettings,
  podsDir: string,
  { clock, machine: { volumeFiles: files }, cluster }: VolumeParts,
  observe: StorageObserver,
): MemoryEmptyDirs | undefined {
  if (files === undefined) return undefined;
  const allocatable = () => allocatableOf(settings, cluster?.node());
  return new MemoryEmptyDirs({ podsDir, files, clock, allocatable, observe });
}

/**
 * Creates NFS volumes; undefined on a machine that gives no access to the files or mounts of
 * volumes.
 */
function nfsVolumes(
  { deadVolumes }: KubeletSettings,
  podsDir: string,
  { clock, random, node, machine: { volumeFiles: files, networkMounts: mounts } }: VolumeParts,
): NfsVolumes | undefined {
  if (files === undefined || mounts === undefined) return undefined;
  const detached = (path: string, why: string) => {
    const message = `The volume at ${path} was detached because its server does not respond; processes with open files may still write to them: ${why}`;
    node.event({ type: 'Warning', reason: 'DeadVolumeDetached', message });
  };
  const options = deadVolumes === 'detach' ? { detached } : {};
  return new NfsVolumes({ podsDir, files, mounts, clock, random, ...options });
}

/**
 * Creates volumes in block mode; undefined on a machine that gives no access to volume files or
 * block devices.
 */
function blockVolumes(
  rootDir: string,
  { clock, machine: { volumeFiles: files, blockDevices: devices } }: VolumeParts,
  observe: StorageObserver,
): BlockVolumes | undefined {
  if (files === undefined || devices === undefined) return undefined;
  return new BlockVolumes({ rootDir, podsDir: podsDirOf(rootDir), files, devices, clock, observe });
}

function claimVolumes(
  rootDir: string,
  { clock, machine, cluster, journal }: VolumeParts,
  notes: PodCheckpoints,
  { reportOwnership, observe, ...others }: ClaimVolumeParts,
): ClaimVolumes {
  const { volumeFiles: files, disks } = machine;
  const timedWalk = (work: () => Promise<void>) =>
    timed({ clock, observe }, 'volume_apply_access_control', [localPlugin], work);
  const walks = { reportOwnership, timed: timedWalk };
  const onDisks = files && disks && new LocalDisks({ rootDir, files, disks, clock, observe });
  const podsDir = podsDirOf(rootDir);
  return new ClaimVolumes({
    claims: cluster?.claims,
    local: files && new LocalVolumes({ podsDir, files, clock, ...walks, disks: onDisks }),
    volumeEvent: cluster?.volumeEvent,
    ...others,
    hostFiles: machine.files,
    matchNode: (required) => {
      const node = cluster?.node();
      if (node === undefined) return 'unknown';
      return matchesNodeSelector(required, node) ? 'this' : 'others';
    },
    records: notes.volumes,
    clock,
    journal,
  });
}

type ReportOwnership = (pod: Pod, volume: string) => OwnershipProgress;

interface ClaimVolumeParts
  extends Pick<ClaimVolumesDeps, 'csi' | 'csiBlock' | 'nfs' | 'block' | 'expansions'> {
  readonly reportOwnership: ReportOwnership;
  readonly observe: StorageObserver;
}

interface CsiVolumeParts {
  readonly checkpoints: PodCheckpoints;
  readonly reportOwnership: ReportOwnership;
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

/**
 * Creates CSI volumes and the plugin registry; undefined on a machine without plugins or access to
 * the files of volumes.
 */
function driverVolumes(
  { rootDir, nodeName, selinux, attaching }: KubeletSettings,
  podsDir: string,
  deps: VolumeParts,
  { checkpoints, observe, api, expansions, block, reportOwnership }: CsiVolumeParts,
): DriverVolumes | undefined {
  const { clock, random, logger, machine, cluster, journal, requestSync } = deps;
  const { volumeFiles: files, plugins: host, disks } = machine;
  if (files === undefined || host === undefined) return undefined;
  const drivers = new CsiDrivers({
    open: (socket) => host.open(socket),
    clock,
    logger,
    observe: csiMetrics(deps.metrics),
    reporter: cluster?.csiNode,
    onRejected: (plugin, why) => plugins.refuse(plugin, why),
    arrived: (driver) => {
      csi.driverRegistered(driver);
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
    reportOwnership,
    otherMounts: disks && ((directory) => disks.otherMounts(directory)),
    hideDevices: async (uid, signal) => await block?.remove(uid, signal),
    reconstruction: reconstructionMetrics(deps.metrics),
    bootId: async () => (await machine.readFile(bootFile).catch(() => '')).trim(),
    ...recordedCsiVolumes(checkpoints.volumes),
    limitReached: (driver) => updates?.refreshSoon(driver),
    requestSync,
    inUseChanged: () => cluster?.nodeChanged(),
  });
  const plugins = pluginRegistry(rootDir, host, drivers, deps);
  return { csi, plugins, updates };
}

/** Finds CSI volumes in the checkpoints of pods. */
function recordedCsiVolumes(
  volumes: PodCheckpoints['volumes'],
): Pick<CsiVolumesDeps, 'recordedVolume' | 'isRecorded' | 'recordedHandles'> {
  return {
    recordedVolume: (uid, name) => {
      const found = Object.values(volumes.of(uid)).find((volume) => volume.name === name);
      return found?.source.kind === 'csi' ? found.source : undefined;
    },
    isRecorded: (driver, handle, besides) =>
      volumes
        .ofOtherPods(besides)
        .some(({ source }) => source.kind === 'csi' && source.driver === driver && source.handle === handle),
    recordedHandles: (driver) =>
      volumes
        .ofOtherPods(undefined)
        .flatMap(({ source }) => (source.kind === 'csi' && source.driver === driver ? [source.handle] : [])),
  };
}

function pluginRegistry(
  rootDir: string,
  host: PluginHost,
  csiDrivers: CsiDrivers,
  { claimDrivers, devices, clock, random, logger }: VolumeParts,
): PluginRegistry {
  const directory = posix.join(rootDir, 'plugins_registry');
  const handlers = new Map<string, PluginHandler>([
    ['CSIPlugin', csiDrivers],
    ...(claimDrivers === undefined ? [] : [['DRAPlugin', claimDrivers] as const]),
    ...(devices === undefined ? [] : [['DevicePlugin', devices] as const]),
  ]);
  return new PluginRegistry({ directory, host, handlers, clock, random, logger });
}
