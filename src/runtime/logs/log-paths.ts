import { posix } from 'node:path';
import type { Container } from '../../kinds/index.ts';
import { type Pod, type PodUid, podUid } from '../../pods/index.ts';

/** Where log collectors expect links to the logs of all containers. */
export const containerLogLinks = '/var/log/containers';
const longestFileName = 255;
const linkSuffix = '.log';

export function podLogDirectory(podLogsDir: string, { metadata }: Pod): string {
  return posix.join(podLogsDir, `${metadata.namespace}_${metadata.name}_${metadata.uid}`);
}

const plainUid = /^(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/**
 * The pod a directory of logs belongs to; very old ones are named by the UID alone. Undefined for what is no directory
 * of a pod: whoever put it there still wants it.
 */
export function podUidOfLogDirectory(directoryName: string): PodUid | undefined {
  const parts = directoryName.split('_');
  const uid = parts.at(-1) ?? '';
  return (parts.length === 3 && uid !== '') || plainUid.test(directoryName) ? podUid(uid) : undefined;
}

export function containerLogDirectory(podLogsDir: string, pod: Pod, container: Container): string {
  return posix.join(podLogDirectory(podLogsDir, pod), container.name);
}

/** Relative to the pod's log directory, as the runtime wants it. */
export function containerLogPath(container: Container, restartCount: number): string {
  return posix.join(container.name, `${restartCount}.log`);
}

/**
 * The restart count of a container the runtime has forgotten, from the names in its log directory: one more than the
 * highest there is, 0 when there is none.
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

/** The link to a container's log; cut to what a file system takes as a name. */
export function containerLogLink(linksDir: string, owner: LogLinkOwner): string {
  const { podName, namespace, containerName, containerId } = owner;
  const name = `${podName}_${namespace}_${containerName}-${containerId}`;
  return posix.join(linksDir, `${name.slice(0, longestFileName - linkSuffix.length)}${linkSuffix}`);
}

/** Undefined when the name is not of such a link, or was cut so short that the id is of no use. */
export function containerIdOfLogLink(fileName: string): string | undefined {
  return /-([^-_]{6,})\.log$/.exec(fileName)?.[1];
}
