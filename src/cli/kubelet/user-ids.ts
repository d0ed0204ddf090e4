import { readFile } from 'node:fs/promises';
import { type Clock, KubelingError, runChecked } from '../../lib/index.ts';

/** A range that applies to both user and group IDs. */
export interface IdRange {
  readonly first: number;
  readonly length: number;
}

const idTables = ['/etc/subuid', '/etc/subgid'] as const;

/**
 * Returns the ID ranges that the machine assigns to users other than kubelet. A process of such a
 * user could use these IDs in a user namespace, and then signal processes of a pod with the same
 * IDs.
 */
export async function foreignIdRanges(read = readIfPossible): Promise<readonly IdRange[]> {
  const tables = await Promise.all(idTables.map(read));
  return tables.flatMap((text) => text.split('\n')).flatMap(foreignRange);
}

async function readIfPossible(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch(() => '');
}

/**
 * Parses a row of /etc/subuid such as `alice:100000:65536`; returns undefined for rows of the user
 * `kubelet`.
 */
function foreignRange(row: string): readonly IdRange[] {
  const [, user, first, length] = /^([^:#]+):(\d+):(\d+)\s*$/.exec(row) ?? [];
  if (user === undefined || user === owner) return [];
  return [{ first: Number(first), length: Number(length) }];
}

/**
 * Access to the subordinate ID ranges of the machine; both methods return undefined if the user or
 * program does not exist.
 */
export interface UserIdMachine {
  readonly passwd: () => Promise<string>;
  /** Returns the output of getsubids with these arguments; undefined if it is not installed. */
  readonly getsubids: (args: readonly string[]) => Promise<string | undefined>;
}

export interface UserIdNeeds {
  readonly idsPerPod: number;
  readonly maxPods: number;
}

const owner = 'kubelet';
const deadlineMs = 10_000;

export function realUserIdMachine(clock: Clock, signal: AbortSignal): UserIdMachine {
  return {
    passwd: () => readFile('/etc/passwd', 'utf8').catch(() => ''),
    getsubids: async (args) => {
      const command = { file: 'getsubids', args, clock, deadlineMs };
      return await runChecked(command, signal).then(
        ({ stdout }) => stdout,
        (error) => {
          if (error instanceof KubelingError && error.code === 'COMMAND_NOT_FOUND') return undefined;
          throw error;
        },
      );
    },
  };
}

/**
 * Returns the IDs for user namespaces of pods: the subordinate range of the user `kubelet` if that
 * user exists, else undefined, which means all IDs above the first block, which belongs to the
 * host. Throws USER_IDS for an unusable range, because using other IDs could overlap with those of
 * other programs.
 */
export async function ownedUserIds(machine: UserIdMachine, needs: UserIdNeeds): Promise<IdRange | undefined> {
  const isUser = (await machine.passwd()).split('\n').some((line) => line.startsWith(`${owner}:`));
  const users = isUser ? await machine.getsubids([owner]) : undefined;
  if (users === undefined) {
    checkAll(needs);
    return undefined;
  }
  const groups = await machine.getsubids(['-g', owner]);
  if (users !== groups) throw unusable('users and groups must be the same', `${users} and ${groups}`);
  const range = parseRange(users);
  checkRange(range, needs);
  return range;
}

function parseRange(text: string): IdRange {
  const [, first, length] = /^0: kubelet (\d+) (\d+)$/.exec(text.trim()) ?? [];
  if (first === undefined || length === undefined) throw unusable('there must be one range', text.trim());
  return { first: Number(first), length: Number(length) };
}

function checkRange({ first, length }: IdRange, { idsPerPod, maxPods }: UserIdNeeds): void {
  if (first < idsPerPod || first % idsPerPod !== 0)
    throw unusable(`the first must be a multiple of ${idsPerPod}`, first);
  if (length % idsPerPod !== 0 || first + length > 2 ** 32)
    throw unusable(`their number must be a multiple of ${idsPerPod}`, length);
  if (length / idsPerPod < maxPods)
    throw unusable(`there must be ${idsPerPod} for each of ${maxPods} pods`, length);
}

/**
 * Checks that all 32-bit user IDs suffice for the pods; the first block of IDs belongs to the host.
 */
function checkAll({ idsPerPod, maxPods }: UserIdNeeds): void {
  const most = Math.floor(2 ** 32 / idsPerPod) - 1;
  if (most >= maxPods) return;
  throw new KubelingError(
    'USER_IDS',
    `Cannot give each of ${maxPods} pods its own user IDs: there are enough for ${most} pods; current value of userNamespaces.idsPerPod is ${idsPerPod}`,
  );
}

function unusable(rule: string, value: string | number): KubelingError {
  return new KubelingError(
    'USER_IDS',
    `Cannot use the subordinate IDs of the user ${owner}: ${rule}; current value is ${value}`,
  );
}
