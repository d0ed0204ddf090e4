import type {
  Container,
  ContainerStatus,
  ContainerStatusResponse,
  ContainerUser,
  PodSandbox,
  PodSandboxState,
  PodSandboxStatus,
  PodSandboxStatusResponse,
  Signal,
} from '../../src/cri/index.ts';
import type { MessageInit } from '../../src/protocols/protobuf/index.ts';
import type { FlavourFacts } from './flavour.ts';
import type { ImageStore } from './image-store.ts';
import { type ContainerRecord, containerState, type SandboxRecord } from './records.ts';

/**
 * Converts records to CRI messages. Nothing is copied here, because responses are copied when they
 * are sent.
 */

export function sandboxState(record: SandboxRecord): PodSandboxState {
  return record.state === 'ready' ? 'SANDBOX_READY' : 'SANDBOX_NOTREADY';
}

export function sandboxItem(record: SandboxRecord): MessageInit<PodSandbox> & PodSandboxKeys {
  const { id, config, runtimeHandler, createdAt } = record;
  const { metadata, labels, annotations } = config;
  return { id, metadata, state: sandboxState(record), createdAt, labels, annotations, runtimeHandler };
}

type PodSandboxKeys = Pick<PodSandbox, 'id' | 'state' | 'labels'>;
type ContainerKeys = Pick<Container, 'id' | 'state' | 'labels' | 'podSandboxId'>;

export function sandboxStatus(record: SandboxRecord, flavour: FlavourFacts): MessageInit<PodSandboxStatus> {
  const options = record.config.linux?.securityContext?.namespaceOptions;
  const [ip = '', ...more] = record.ips;
  const { network, pid, ipc } = options ?? {};
  return {
    ...sandboxItem(record),
    network: { ip, additionalIps: more.map((other) => ({ ip: other })) },
    linux: {
      namespaces: {
        options: flavour.statusDetails === 'all' ? options : { network, pid, ipc },
      },
    },
  };
}

export function sandboxInfo(record: SandboxRecord): MessageInit<PodSandboxStatusResponse>['info'] {
  const { metadata, hostname, logDirectory, labels, annotations } = record.config;
  return {
    info: JSON.stringify({
      pid: record.pid,
      processStatus: record.pid === 0 ? 'deleted' : 'running',
      netNamespaceClosed: record.network === 'own' && record.ips.length === 0,
      snapshotKey: record.id,
      snapshotter: 'overlayfs',
      runtimeHandler: record.runtimeHandler,
      runtimeType: 'io.containerd.runc.v2',
      config: { metadata, hostname, log_directory: logDirectory, labels, annotations },
    }),
  };
}

export function containerItem(
  record: ContainerRecord,
  flavour: FlavourFacts,
): MessageInit<Container> & ContainerKeys {
  const { id, sandbox, config, imageId, createdAt } = record;
  const { metadata, image, labels, annotations } = config;
  return {
    id,
    podSandboxId: sandbox.id,
    metadata,
    image,
    imageRef: imageId,
    state: containerState(record),
    createdAt,
    labels,
    annotations,
    imageId: flavour.statusDetails === 'all' ? imageId : '',
  };
}

export function containerStatus(
  record: ContainerRecord,
  images: ImageStore,
  flavour: FlavourFacts,
): MessageInit<ContainerStatus> {
  const { id, config, createdAt, exitCode, message, logPath, imageId } = record;
  const { metadata, labels, annotations, mounts } = config;
  const state = containerState(record);
  const stored = images.byId(imageId);
  const [tag] = stored?.repoTags ?? [];
  const [digest = imageId] = stored?.repoDigests ?? [];
  return {
    id,
    metadata,
    state,
    createdAt,
    startedAt: state === 'CONTAINER_CREATED' ? 0n : record.startedAt,
    finishedAt: state === 'CONTAINER_EXITED' || state === 'CONTAINER_UNKNOWN' ? record.finishedAt : 0n,
    exitCode,
    image: tag === undefined ? config.image : { image: tag },
    imageRef: digest,
    reason: reasonOf(record),
    message,
    labels,
    annotations,
    mounts,
    logPath,
    resources: { linux: record.resources },
    ...(flavour.statusDetails === 'all'
      ? { imageId, user: userOf(record), stopSignal: stopSignalOf(record) }
      : {}),
  };
}

export function containerInfo(record: ContainerRecord): MessageInit<ContainerStatusResponse>['info'] {
  const { metadata, image, command, args, labels, annotations, logPath } = record.config;
  return {
    info: JSON.stringify({
      sandboxID: record.sandbox.id,
      pid: record.process?.pid ?? 0,
      removing: record.busy === 'removing',
      snapshotKey: record.id,
      snapshotter: 'overlayfs',
      runtimeType: 'io.containerd.runc.v2',
      config: { metadata, image, command, args, labels, annotations, log_path: logPath },
    }),
  };
}

function reasonOf(record: ContainerRecord): string {
  if (record.reason !== '' || containerState(record) !== 'CONTAINER_EXITED') return record.reason;
  return record.exitCode === 0 ? 'Completed' : 'Error';
}

function userOf(record: ContainerRecord): MessageInit<ContainerUser> {
  const security = record.config.linux?.securityContext;
  const [name = '', group = ''] = record.launch.user.split(':');
  const uid = security?.runAsUser?.value ?? BigInt(/^\d+$/.test(name) ? name : 0);
  const gid = security?.runAsGroup?.value ?? BigInt(/^\d+$/.test(group) ? group : 0);
  return { linux: { uid, gid, supplementalGroups: [gid, ...(security?.supplementalGroups ?? [])] } };
}

function stopSignalOf(record: ContainerRecord): Signal {
  return `SIG${record.stopSignal}` as Signal;
}
