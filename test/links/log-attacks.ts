import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ContainerStatus } from '../../src/cri/index.ts';
import { openDirectoryHandle } from '../../src/lib/index.ts';
import { ContainerRemover } from '../../src/runtime/containers/container-deletor.ts';
import { realLogFiles, realRotationFiles, realRuntimeFiles } from '../../src/runtime/index.ts';
import type { Arena, Attack, AttackedPath } from './attacked-path.ts';
import { recreateTree } from './recreate-tree.ts';

const changedBy = 'a pod with a hostPath on /var/log/pods, or a log collector';
const never = new AbortController().signal;
const stamped = '0.log.20260101-000000';

/**
 * The log directory of one container, which is repeatedly swapped with a link to the canary's
 * directory.
 */
function logs({ root, canary }: Arena) {
  const pods = join(root, 'logs');
  const pod = join(pods, 'ns_pod_uid');
  const container = join(pod, 'c');
  mkdirSync(container, { recursive: true });
  const link = join(root, 'link');
  symlinkSync(canary.directory, link);
  const own = openDirectoryHandle(pod, ['c']);
  const write = (name: string) => writeFileSync(own.at(name), 'own\n');
  for (const name of ['0.log', stamped]) write(name);
  return { pods, pod, container, swaps: [[container, link]] as const, write };
}

const reading: AttackedPath = {
  place: 'container log, read',
  changedBy,
  protectedBy: 'the path of the open file must match its log; no link as the last component',
  attack(arena): Attack {
    const { pods, container, swaps } = logs(arena);
    const files = realRuntimeFiles();
    return {
      swaps,
      async act() {
        await using handle = await realLogFiles(pods).open(join(container, '0.log'));
        const into = Buffer.alloc(100);
        const read = (await handle?.read(into, 0)) ?? 0;
        const end = await files.readLogEnd(pods, join(container, '0.log'), 100);
        return `${into.subarray(0, read)}${end}`;
      },
    };
  },
};

const rotation: AttackedPath = {
  place: 'container log, rotated, compressed and removed',
  changedBy,
  protectedBy: 'opened by the handle of its directory, below the log directory without links',
  attack(arena): Attack {
    const { container, swaps, write } = logs(arena);
    const files = realRotationFiles();
    const [log, rotated] = [join(container, '0.log'), join(container, stamped)];
    return {
      swaps,
      async act() {
        write('0.log');
        const sizes = [await files.size(log), ...(await files.list(container)).map(({ bytes }) => bytes)];
        await files.rename(log, rotated);
        await files.compress(rotated, never);
        await files.remove(`${rotated}.gz`);
        write(stamped);
        await files.restore(rotated, log);
        return sizes.join();
      },
    };
  },
};

const removal: AttackedPath = {
  place: 'container logs, removed with their container',
  changedBy,
  protectedBy: 'opened by the handle of their directory, below the log directory without links',
  attack(arena): Attack {
    const { container, swaps, write } = logs(arena);
    const status = { labels: {}, annotations: {}, mounts: [], logPath: join(container, '0.log') };
    const remover = new ContainerRemover({
      cri: {
        containerStatus: async () => ({ status: status as unknown as ContainerStatus, info: {} }),
        removeContainer: async () => ({}),
      },
      files: realRuntimeFiles(),
      logLinksDir: join(arena.root, 'links'),
      removed: () => {},
    });
    return {
      swaps,
      async act() {
        for (const name of ['0.log', stamped]) write(name);
        await remover.remove('c', 'with-logs', never);
        return '';
      },
    };
  },
};

const directories: AttackedPath = {
  place: 'directory of container logs, created',
  changedBy,
  protectedBy: 'each component is created and opened from the handle of its parent, without links',
  attack(arena): Attack {
    const { pods, swaps } = logs(arena);
    const files = realRuntimeFiles();
    let number = 0;
    return {
      swaps,
      async act() {
        await files.makeDirectoryBelow(pods, `ns_pod_uid/c/made${number++ % 10}`, 0o755);
        return '';
      },
    };
  },
};

const wholePod: AttackedPath = {
  place: 'logs of a pod, removed with the pod',
  changedBy,
  protectedBy: 'the tree is removed by handles, each component opened from its parent',
  attack({ root, canary }): Attack {
    const tree = join(root, 'logs/ns_pod_uid');
    const [at, link] = [join(tree, 'd'), join(root, 'link')];
    const files = realRuntimeFiles();
    const renew = () => recreateTree({ tree, at, link, target: canary.directory });
    renew();
    return {
      swaps: [[at, link]],
      async act() {
        renew();
        await files.remove(tree);
        return '';
      },
    };
  },
};

export const logPaths: readonly AttackedPath[] = [reading, rotation, removal, directories, wholePod];
