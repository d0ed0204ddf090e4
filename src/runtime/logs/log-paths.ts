import { posix } from 'node:path';
import type { Container } from '../../kinds/index.ts';
import { type Pod, type PodUid, podUid } from '../../pods/index.ts';

/** The directory in which log collectors expect links to container logs. */
export const containerLogLinks = '/var/log/containers';
const longestFileName = 255;
const linkSuffix = '.log';

export function podLogDirectory(podLogsDir: string, { metadata }: Pod): string {
  return posix.join(podLogsDir, `${metadata.namespace}_${metadata.name}_${metadata.uid}`);
}

const plainUid = /^(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/**
 * Returns the UID of the pod that a log directory belongs to; old directories are named by the UID
 * alone. Undefined for other directories, which are not the kubelet's.
 */
export function podUidOfLogDirectory(directoryName: string): PodUid | undefined {
  const parts = directoryName.split('_');
  const uid = parts.at(-1) ?? '';
  return (parts.length === 3 && uid !== '') || plainUid.test(directoryName) ? podUid(uid) : undefined;
}

export function containerLogDirectory(podLogsDir: string, pod: Pod, container: Container): string {
  return posix.join(podLogDirectory(podLogsDir, pod), container.name);
}

/** Returns the path of the log relative to the pod's log directory, as the CRI requires. */
export function containerLogPath(container: Container, restartCount: number): string {
  return posix.join(container.name, `${restartCount}.log`);
}

/**
 * Returns the restart count of a container without instances in the runtime, from the names of its
 * log files: the highest number plus one, or 0.
 */
export function restartCountFromLogs(fileNames: Iterable<string>): number {
  let highest = -1;
  for (const name of fileNames) {
    const [, digits] = /^(\d{1,9})\.log/.exec(name) ?? [];
    if (digits !== undefined) highest = Math.max(highest, Number(digits));
  }
  return highest + 1;
}

export interface LogLinkOwner {
  readonly podName: string;
  readonly namespace: string;
  readonly containerName: string;
  readonly containerId: string;
}

/**
 * Returns the path of the link to a container's log; its name is truncated to the length of a file
 * name.
 */
export function containerLogLink(linksDir: string, owner: LogLinkOwner): string {
  const { podName, namespace, containerName, containerId } = owner;
  const name = `${podName}_${namespace}_${containerName}-${containerId}`;
  return posix.join(linksDir, `${name.slice(0, longestFileName - linkSuffix.length)}${linkSuffix}`);
}

/**
 * Returns the container ID in the name of a log link; undefined for other names, and when
 * truncation left too little of the ID.
 */
export function containerIdOfLogLink(fileName: string): string | undefined {
  return /-([^-_]{6,})\.log$/.exec(fileName)?.[1];
}
