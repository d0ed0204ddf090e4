import { posix } from 'node:path';
import type { LinuxContainerResources, UserNamespace } from '../../cri/index.ts';
import type { Container } from '../../kinds/index.ts';
import { KubelingError, type Random } from '../../lib/index.ts';
import type { Pod, PodEvent, PodJournal, PodUid, ResourceList } from '../../pods/index.ts';
import type { MessageInit } from '../../protocols/protobuf/index.ts';
import { type ContainerInputs, containerConfig } from '../containers/container-config.ts';
import type { ObjectLookup } from '../containers/environment.ts';
import {
  type LinuxNode,
  overheadResources,
  type RemovedLimits,
  type ResourceGrants,
  resizedResources,
} from '../containers/linux-resources.ts';
import {
  getsHostsFile,
  hostsFileOf,
  type MountableVolume,
  newTerminationFile,
  type SubPath,
} from '../containers/mounts.ts';
import type { SeccompSettings } from '../containers/security-context.ts';
import { imageUser } from '../containers/security-context.ts';
import type { KnownServices } from '../containers/service-variables.ts';
import { whyUnusable } from '../containers/subpaths.ts';
import type { ClusterDns, DnsSettings } from '../sandbox/dns.ts';
import { hostsFile, hostsFilePath, podHostname } from '../sandbox/hostname.ts';
import { sandboxConfig } from '../sandbox/sandbox-config.ts';
import { computePodActions } from './compute-pod-actions.ts';
import type { ContainerPlan, ContainerRequest, PlannedFile, PodPlanner, SandboxPlan } from './pod-planner.ts';

/** Settings of pod planning that are the same for all pods. */
export interface NodePlannerSettings {
  readonly node: LinuxNode;
  readonly podLogsDir: string;
  /** Parent directory of the pod directories, which are named by UID. */
  readonly podsDir: string;
  readonly seccomp: SeccompSettings;
  readonly selinux: 'enabled' | 'disabled';
  readonly thermalThrottlePaths: readonly string[];
  readonly clusterDns: ClusterDns;
  readonly clusterDomain: string;
  /** Path of the node's resolv.conf; empty when pods get none. */
  readonly resolvConf: string;
  readonly stopSignals: 'honoured' | 'ignored';
}

/**
 * Functions that read the inputs of a pod's plan. None of them may block for long, because the pod
 * worker waits.
 */
export interface NodePlannerDeps {
  readonly random: Random;
  readonly journal: PodJournal;
  /** Records an event about the node. */
  readonly nodeEvent: (event: PodEvent) => void;
  /** Reads a text file of the node. */
  readonly readNodeFile: (path: string) => Promise<string>;
  /** The node's addresses, preferred address first. */
  readonly nodeIps: () => readonly string[];
  readonly allocatable: () => ResourceList;
  readonly cgroupParent: (pod: Pod) => string;
  /**
   * Runtime handler of the pod's RuntimeClass; empty for the runtime's default handler. Throws for
   * a missing RuntimeClass.
   */
  readonly runtimeHandler: (pod: Pod, signal: AbortSignal) => Promise<string>;
  readonly supportsRecursiveReadOnly: (runtimeHandler: string) => boolean;
  /**
   * User namespace of the pod with the given runtime handler. Throws when the requested user
   * namespace is not available.
   */
  readonly users: (pod: Pod, runtimeHandler: string) => Promise<MessageInit<UserNamespace>>;
  readonly objects: ObjectLookup | undefined;
  readonly services: () => KnownServices;
  /** Mounted volumes of the pod, keyed by volume name. */
  readonly volumes: (uid: PodUid) => ReadonlyMap<string, MountableVolume>;
  /** Supplementary groups that own the pod's volumes. */
  readonly volumeGroups: (uid: PodUid) => readonly number[];
  /**
   * CPUs, memory and devices allocated to the container, prepared for use. Without this function
   * containers get none.
   */
  readonly grants?:
    | ((pod: Pod, container: Container, signal: AbortSignal) => Promise<ContainerInputs['grants']>)
    | undefined;
  /**
   * Allocated resources of the pod's containers that affect its sandbox. Without this function the
   * sandbox gets none.
   */
  readonly podGrants?: ((pod: Pod) => ResourceGrants) | undefined;
  /** Prepares a subPath mount and returns its path; its errors must not contain host paths. */
  readonly subPath?: (podDir: string, subPath: SubPath, signal: AbortSignal) => Promise<string>;
  /** Reads a file of a volume as text; throws when the file is missing. */
  readonly volumeFile?: (volumePath: string, path: string, signal: AbortSignal) => Promise<string>;
}

const hostsFileMode = 0o644;
/** File mode of the termination message: the container may run as any user and must write it. */
const terminationFileMode = 0o666;

/** Plans sandboxes and containers from pods, with the settings and state of this node. */
export class NodePlanner implements PodPlanner {
  readonly computePodActions = computePodActions;
  readonly #settings: NodePlannerSettings;
  readonly #deps: NodePlannerDeps;

  constructor(settings: NodePlannerSettings, deps: NodePlannerDeps) {
    this.#settings = settings;
    this.#deps = deps;
  }

  async sandboxPlan(pod: Pod, attempt: number, signal: AbortSignal): Promise<SandboxPlan> {
    const { journal, nodeEvent } = this.#deps;
    const runtimeHandler = await this.#deps.runtimeHandler(pod, signal);
    const { config, events, nodeEvents } = sandboxConfig(pod, {
      attempt,
      podLogsDir: this.#settings.podLogsDir,
      cgroupParent: this.#deps.cgroupParent(pod),
      dns: await this.#dns(),
      node: this.#settings.node,
      grants: this.#deps.podGrants?.(pod) ?? {},
      extraGroups: this.#deps.volumeGroups(pod.metadata.uid),
      userNamespace: await this.#deps.users(pod, runtimeHandler),
    });
    for (const event of events) journal.event(pod, event);
    for (const event of nodeEvents) nodeEvent(event);
    return { config, runtimeHandler };
  }

  async containerPlan(request: ContainerRequest, signal: AbortSignal): Promise<ContainerPlan> {
    const { pod, container, restartCount, image, podIps, targetId } = request;
    const { uid } = pod.metadata;
    const { subPath, supportsRecursiveReadOnly } = this.#deps;
    const { node, seccomp, selinux, thermalThrottlePaths, stopSignals } = this.#settings;
    const podDir = posix.join(this.#settings.podsDir, uid);
    const terminationFile = newTerminationFile(podDir, container, this.#deps.random);
    const handler = await this.#deps.runtimeHandler(pod, signal);
    const config = await containerConfig(
      pod,
      container,
      {
        restartCount,
        imageRef: image.ref,
        environment: this.#environment(pod, podIps),
        userNamespace: await this.#deps.users(pod, handler),
        mounts: {
          volumes: new Map([...this.#deps.volumes(uid), ...(request.volumeImages ?? [])]),
          hostsFile: hostsFileOf(podDir),
          terminationFile,
          selinux,
          runtimeHandler: handler,
          recursiveReadOnly: supportsRecursiveReadOnly(handler) ? 'supported' : 'unsupported',
          ...(subPath === undefined
            ? {}
            : { subPath: (part: SubPath, inner: AbortSignal) => subPath(podDir, part, inner) }),
        },
        security: {
          imageUser: imageUser(image.uid, image.username),
          seccomp,
          extraGroups: this.#deps.volumeGroups(uid),
          thermalThrottlePaths,
        },
        node,
        grants: await this.#deps.grants?.(pod, container, signal),
        stopSignals,
        ...(targetId === undefined ? {} : { targetId }),
      },
      signal,
    );
    const hosts = await this.#hostsFile(pod, container, podIps, hostsFileOf(podDir));
    const last = terminationFile === undefined ? [] : [emptyFile(terminationFile)];
    return { config, files: [...hosts, ...last] };
  }

  updatedResources(
    pod: Pod,
    container: Container,
    lifted: RemovedLimits,
  ): MessageInit<LinuxContainerResources> {
    return resizedResources(pod, container, this.#settings.node, lifted);
  }

  overheadResources(pod: Pod): MessageInit<LinuxContainerResources> {
    return overheadResources(pod, this.#settings.node);
  }

  /** On the host network the pod's addresses are the node's. */
  #environment({ spec, metadata }: Pod, ownIps: readonly string[]) {
    const { objects, services, allocatable, nodeIps } = this.#deps;
    const hostIps = nodeIps();
    const podIps = spec.hostNetwork === true ? hostIps : ownIps;
    const volumeFile = (volume: string, path: string, signal: AbortSignal) =>
      this.#volumeFile(metadata.uid, volume, path, signal);
    return { objects, services: services(), allocatable: allocatable(), podIps, hostIps, volumeFile };
  }

  async #volumeFile(
    uid: PodUid,
    name: string,
    path: string,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const volume = this.#deps.volumes(uid).get(name);
    if (volume?.kind !== 'path') return undefined;
    const read = this.#deps.volumeFile ?? (async () => '');
    return await read(volume.hostPath, path, signal).catch((error) => {
      signal.throwIfAborted();
      throw new KubelingError('CONTAINER_CONFIG', `couldn't parse env file: ${whyUnusable(error)}`);
    });
  }

  async #dns(): Promise<DnsSettings> {
    const { clusterDns, clusterDomain, resolvConf } = this.#settings;
    const text = resolvConf === '' ? undefined : await this.#deps.readNodeFile(resolvConf);
    return { clusterDns, clusterDomain, nodeIps: this.#deps.nodeIps(), resolvConf: text };
  }

  async #hostsFile(
    pod: Pod,
    container: Container,
    podIps: readonly string[],
    path: string,
  ): Promise<PlannedFile[]> {
    if (!getsHostsFile(pod, container, podIps)) return [];
    const nodeHosts = pod.spec.hostNetwork === true ? await this.#deps.readNodeFile(hostsFilePath) : '';
    const hostname = podHostname(pod, this.#settings.clusterDomain);
    return [{ path, text: hostsFile(pod, { hostname, podIps, nodeHosts }), mode: hostsFileMode }];
  }
}

function emptyFile(path: string): PlannedFile {
  return { path, text: '', mode: terminationFileMode };
}
