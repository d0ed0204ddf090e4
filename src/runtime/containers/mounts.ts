import { posix } from 'node:path';
import type { ContainerConfig, Device, Mount, MountPropagation } from '../../cri/index.ts';
import type { Container, VolumeMount } from '../../kinds/index.ts';
import { KubelingError, type Random, randomHex } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';
import { hostsFilePath } from '../sandbox/hostname.ts';
import { type ExpansionBudget, expandStrictly } from './expansion.ts';
import { isUnmade, whyUnusable } from './subpaths.ts';

/** The way a volume of the pod is passed to the runtime. */
export type MountableVolume =
  | {
      readonly kind: 'path';
      readonly hostPath: string;
      readonly readOnly?: boolean;
      /** Whether the volume's files may get another SELinux label. */
      readonly relabel?: boolean;
      /** The directory name of the volume's subPath mounts; the volume's name if undefined. */
      readonly specName?: string;
    }
  | MountableImage
  /** A volume that is passed to containers as a block device, without a file system. */
  | { readonly kind: 'block'; readonly devicePath: string; readonly readOnly?: boolean };

/** A volume with the files of an image that is present on the node. */
export interface MountableImage {
  readonly kind: 'image';
  /** The image reference that the runtime reports. */
  readonly image: string;
  /** The image name in the pod's spec. */
  readonly asked?: string;
}

export interface SubPath {
  readonly containerName: string;
  /** The index of the mount in the container's volumeMounts. */
  readonly index: number;
  readonly volumeName: string;
  /** The directory name of the volume's subPath mounts. */
  readonly specName: string;
  readonly volumePath: string;
  /** The relative path inside the volume, without `..`. */
  readonly path: string;
}

export interface MountInputs {
  readonly volumes: ReadonlyMap<string, MountableVolume>;
  readonly podIps: readonly string[];
  /** The path of the pod's hosts file, which is written before the container starts. */
  readonly hostsFile: string;
  /**
   * Host path of the termination message file; undefined when the container has no
   * terminationMessagePath.
   */
  readonly terminationFile: string | undefined;
  readonly recursiveReadOnly: 'supported' | 'unsupported';
  /** The runtime handler of the pod's runtime class; empty for the default handler. */
  readonly runtimeHandler: string;
  readonly selinux: 'enabled' | 'disabled';
  readonly lookup: (name: string) => string | undefined;
  readonly budget: ExpansionBudget;
  /**
   * Prepares a subPath: creates the directory if it is missing and returns a path that no symlink
   * can redirect out of the volume.
   */
  readonly subPath?: (subPath: SubPath, signal: AbortSignal) => Promise<string>;
}

type MountInit = MessageInit<Mount>;

/**
 * Returns the mounts of a container. Throws CONTAINER_CONFIG with the message for the container's
 * waiting state.
 */
export async function containerMounts(
  pod: Pod,
  container: Container,
  inputs: MountInputs,
  signal: AbortSignal,
): Promise<readonly MountInit[]> {
  const volumes: MountInit[] = [];
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
    volumes.push(await volumeMount(pod, container, { index, mount }, inputs, signal));
  }
  return [
    ...volumes,
    ...(getsHostsFile(pod, container, inputs.podIps) ? [hostsMount(inputs)] : []),
    ...terminationMount(container, inputs),
  ];
}

/** Returns the block volumes of the container as devices. */
export function volumeDevices(
  container: Container,
  volumes: ReadonlyMap<string, MountableVolume>,
): readonly MessageInit<Device>[] {
  return (container.volumeDevices ?? []).map(({ name, devicePath }) => {
    if (!posix.isAbsolute(devicePath)) {
      throw failed(`error DevicePath \`${devicePath}\` must be an absolute path`);
    }
    const volume = volumes.get(name);
    if (volume?.kind !== 'block') {
      throw failed(`cannot find volume "${name}" to pass into container "${container.name}"`);
    }
    const permissions = volume.readOnly === true ? 'r' : 'mrw';
    return { containerPath: devicePath, hostPath: volume.devicePath, permissions };
  });
}

/**
 * Whether the kubelet's hosts file is mounted: it is not mounted if the container mounts another
 * file at that path, or while the pod has no address.
 */
export function getsHostsFile(pod: Pod, container: Container, podIps: readonly string[]): boolean {
  const own = container.volumeMounts?.some(({ mountPath }) => mountPath === hostsFilePath) ?? false;
  return !own && (podIps.length > 0 || pod.spec.hostNetwork === true);
}

export function hostsFileOf(podDir: string): string {
  return posix.join(podDir, 'etc-hosts');
}

/**
 * Returns a new path for each container instance, so that an instance never has the termination
 * message of a previous instance.
 */
export function newTerminationFile(podDir: string, container: Container, random: Random): string | undefined {
  if ((container.terminationMessagePath ?? '') === '') return undefined;
  return posix.join(podDir, 'containers', container.name, randomHex(random, 8));
}

function hostsMount({ hostsFile, selinux }: MountInputs): MountInit {
  return { containerPath: hostsFilePath, hostPath: hostsFile, selinuxRelabel: selinux === 'enabled' };
}

function terminationMount(container: Container, { terminationFile, selinux }: MountInputs): MountInit[] {
  const path = container.terminationMessagePath ?? '';
  if (terminationFile === undefined || path === '') return [];
  const containerPath = absolute(path);
  return [{ containerPath, hostPath: terminationFile, selinuxRelabel: selinux === 'enabled' }];
}

async function volumeMount(
  pod: Pod,
  container: Container,
  { index, mount }: { readonly index: number; readonly mount: VolumeMount },
  inputs: MountInputs,
  signal: AbortSignal,
): Promise<MountInit> {
  const volume = inputs.volumes.get(mount.name);
  if (volume === undefined || volume.kind === 'block') {
    throw failed(`cannot find volume "${mount.name}" to mount into container "${container.name}"`);
  }
  const path = subPathOf(mount, inputs);
  const common = {
    containerPath: absolute(mount.mountPath),
    propagation: propagationOf(mount),
    recursiveReadOnly: isRecursivelyReadOnly(mount, inputs),
  };
  if (volume.kind === 'image') {
    const { image, asked: userSpecifiedImage = '' } = volume;
    // The runtime gets the same annotations with which the image was pulled.
    const { annotations = {} } = pod.metadata;
    const spec = { image, userSpecifiedImage, runtimeHandler: inputs.runtimeHandler, annotations };
    return { ...common, readonly: true, image: spec, imageSubPath: path };
  }
  const { specName = mount.name } = volume;
  const subPath = { containerName: container.name, index, volumeName: mount.name, specName, path };
  return {
    ...common,
    readonly: mount.readOnly === true || volume.readOnly === true,
    hostPath: await hostPathOf({ ...subPath, volumePath: volume.hostPath }, inputs, signal),
    selinuxRelabel: inputs.selinux === 'enabled' && volume.relabel === true,
  };
}

async function hostPathOf(subPath: SubPath, inputs: MountInputs, signal: AbortSignal): Promise<string> {
  if (subPath.path === '') return subPath.volumePath;
  const { volumeName, containerName } = subPath;
  const what = `for volumeMount "${volumeName}" of container "${containerName}"`;
  if (inputs.subPath === undefined) {
    throw failed(`failed to prepare subPath ${what}: this node cannot mount parts of volumes yet`);
  }
  return await inputs.subPath(subPath, signal).catch((error) => {
    signal.throwIfAborted();
    const doing = isUnmade(error) ? 'create subPath directory' : 'prepare subPath';
    throw failed(`failed to ${doing} ${what}: ${whyUnusable(error)}`);
  });
}

/** The path inside the volume; empty for the complete volume. */
function subPathOf({ subPath = '', subPathExpr = '' }: VolumeMount, { lookup, budget }: MountInputs): string {
  const path = subPathExpr === '' ? subPath : expandStrictly(subPathExpr, lookup, budget);
  if (posix.isAbsolute(path)) throw failed(`error SubPath \`${path}\` must not be an absolute path`);
  if (path.split('/').includes('..')) {
    throw failed(`unable to provision SubPath \`${path}\`: must not contain '..'`);
  }
  return path;
}

const propagations: ReadonlyMap<string, MountPropagation> = new Map([
  ['None', 'PROPAGATION_PRIVATE'],
  ['HostToContainer', 'PROPAGATION_HOST_TO_CONTAINER'],
  ['Bidirectional', 'PROPAGATION_BIDIRECTIONAL'],
]);

function propagationOf({ mountPropagation = 'None' }: VolumeMount): MountPropagation {
  const propagation = propagations.get(mountPropagation);
  if (propagation === undefined) throw failed(`invalid MountPropagation mode: "${mountPropagation}"`);
  return propagation;
}

function isRecursivelyReadOnly(mount: VolumeMount, inputs: MountInputs): boolean {
  const mode = mount.recursiveReadOnly ?? 'Disabled';
  if (mode === 'Disabled') return false;
  const problem = recursionProblem(mount, mode, inputs);
  if (problem !== undefined) throw failed(`failed to resolve recursive read-only mode: ${problem}`);
  return inputs.recursiveReadOnly === 'supported';
}

function recursionProblem(mount: VolumeMount, mode: string, inputs: MountInputs): string | undefined {
  const requested = `volume "${mount.name}" requested recursive read-only mode, but it is not`;
  if (mount.readOnly !== true) return `${requested} read-only`;
  const propagation = mount.mountPropagation ?? 'None';
  if (propagation !== 'None') return `${requested} compatible with propagation "${propagation}"`;
  if (mode === 'IfPossible') return undefined;
  if (mode !== 'Enabled') return `unknown recursive read-only mode "${mode}"`;
  return inputs.recursiveReadOnly === 'supported' ? undefined : `${requested} supported by the runtime`;
}

function absolute(path: string): string {
  return posix.isAbsolute(path) ? path : `/${path}`;
}

function failed(message: string): KubelingError {
  return new KubelingError('CONTAINER_CONFIG', message);
}

/** An image volume of a pod: it has the files of an image. */
export interface ImageVolume {
  readonly name: string;
  readonly reference: string;
  readonly pullPolicy: string | undefined;
}

/** Returns the image volumes that the container mounts, each once. */
export function imageVolumesOf({ spec }: Pod, container: Container): readonly ImageVolume[] {
  const mounted = new Set((container.volumeMounts ?? []).map(({ name }) => name));
  return (spec.volumes ?? []).flatMap(({ name, image }) =>
    image === undefined || !mounted.has(name)
      ? []
      : [{ name, reference: image.reference ?? '', pullPolicy: image.pullPolicy }],
  );
}

/**
 * Adds the cause to the error of a runtime without image volume support, which only reports a
 * missing host path.
 */
export function explainRefusal(error: unknown, { mounts = [] }: MessageInit<ContainerConfig>): unknown {
  const requested = mounts.find(({ image }) => image !== undefined);
  if (requested === undefined || !(error instanceof KubelingError)) return error;
  const why = `the container mounts an image at ${requested.containerPath}, which requires containerd 2.1 or CRI-O 1.31`;
  return new KubelingError(error.code, `${error.message} (${why})`, { cause: error });
}
