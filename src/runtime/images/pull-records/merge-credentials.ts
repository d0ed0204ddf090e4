import type { Coordinates, PullCredential } from '../credentials/pull-credential.ts';
import type { PulledRecord, RecordedCredentials, RecordedSecret } from './record-format.ts';

const nobody: RecordedCredentials = {
  kubernetesSecrets: [],
  kubernetesServiceAccounts: [],
  nodePodsAccessible: false,
};

/** What a pull with these credentials proves; an anonymous one that anybody may have the image. */
export function recordedOf(used: PullCredential | 'anonymous'): RecordedCredentials {
  if (used === 'anonymous' || used.source.kind === 'node') return { ...nobody, nodePodsAccessible: true };
  const { kind, uid, namespace, name } = used.source;
  if (kind === 'service-account') return { ...nobody, kubernetesServiceAccounts: [{ uid, namespace, name }] };
  return { ...nobody, kubernetesSecrets: [{ uid, namespace, name, credentialHash: used.hash }] };
}

/** The record with what is new; the same object when nothing is. */
export function withCredentials(
  record: PulledRecord,
  image: string,
  added: RecordedCredentials,
  nowMs: number,
): PulledRecord {
  const before = record.credentialMapping.get(image);
  const after = before === undefined ? added : merged(before, added);
  if (after === before) return record;
  const credentialMapping = new Map(record.credentialMapping).set(image, after);
  return { ...record, credentialMapping, lastUpdatedMs: nowMs };
}

function merged(before: RecordedCredentials, added: RecordedCredentials): RecordedCredentials {
  if (before.nodePodsAccessible) return before;
  if (added.nodePodsAccessible) return { ...nobody, nodePodsAccessible: true };
  const { kubernetesSecrets: secrets, kubernetesServiceAccounts: accounts } = added;
  const newSecrets = secrets.filter(
    (each) =>
      !before.kubernetesSecrets.some(
        (old) => isSame(old, each) && old.credentialHash === each.credentialHash,
      ),
  );
  const newAccounts = accounts.filter(
    (each) => !before.kubernetesServiceAccounts.some((old) => isSame(old, each)),
  );
  if (newSecrets.length === 0 && newAccounts.length === 0) return before;
  return {
    nodePodsAccessible: false,
    kubernetesSecrets: inOrder(replaced<RecordedSecret>(before.kubernetesSecrets, newSecrets)),
    kubernetesServiceAccounts: inOrder(replaced(before.kubernetesServiceAccounts, newAccounts)),
  };
}

/** A secret has one entry, whatever it held in the past. */
function replaced<T extends Coordinates>(before: readonly T[], added: readonly T[]): readonly T[] {
  return [...before.filter((old) => !added.some((each) => isSame(old, each))), ...added];
}

export function isSame(one: Coordinates, other: Coordinates): boolean {
  return one.uid === other.uid && one.namespace === other.namespace && one.name === other.name;
}

function inOrder<T extends Coordinates>(items: readonly T[]): readonly T[] {
  const compare = (one: string, other: string) => (one === other ? 0 : one < other ? -1 : 1);
  return items.toSorted(
    (a, b) => compare(a.namespace, b.namespace) || compare(a.name, b.name) || compare(a.uid, b.uid),
  );
}
