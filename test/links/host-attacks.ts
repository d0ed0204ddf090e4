import { chownSync, lchownSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { changeUserFile } from '../../src/cli/context/user-file.ts';
import { writeFileAtomic } from '../../src/lib/index.ts';
import { GrpcServer } from '../../src/protocols/grpc/index.ts';
import { realRuntimeFiles } from '../../src/runtime/index.ts';
import { createLogTree } from '../../src/server/system-logs/log-tree.ts';
import type { Arena, Attack, AttackedPath } from './attacked-path.ts';

const user = 4_242;

/** A user's file that is repeatedly swapped with a link to the canary's file. */
function fileOf({ root, canary }: Arena, owner = 0) {
  const directory = join(root, 'home');
  const [path, link] = [join(directory, 'config'), join(directory, 'link')];
  mkdirSync(directory, { mode: 0o755 });
  writeFileSync(path, 'own\n', { mode: 0o600 });
  symlinkSync(canary.file, link);
  const own = () => {
    for (const each of [directory, path]) chownSync(each, owner, owner);
    lchownSync(link, owner, owner);
  };
  own();
  return { directory, path, link, swaps: [[path, link]] as const };
}

const changing = (seen: string[]) => (text: string) => {
  seen.push(text);
  return `${text.slice(0, 100)}more\n`;
};

const context: AttackedPath = {
  place: "kubeling context: a user's kubeconfig",
  changedBy: 'the user, while root changes it',
  protectedBy: 'opened by its directory handle; owner and mode are set on the new file before it is renamed',
  attack(arena): Attack {
    const { path, swaps } = fileOf(arena, user);
    return {
      swaps,
      async act() {
        const observed: string[] = [];
        await changeUserFile(path, changing(observed));
        return observed.join('');
      },
    };
  },
};

const contextDirectory: AttackedPath = {
  ...context,
  place: "kubeling context: the directory of a user's kubeconfig",
  attack(arena): Attack {
    const { directory } = fileOf(arena, user);
    const link = join(arena.root, 'link');
    symlinkSync(arena.canary.directory, link);
    lchownSync(link, user, user);
    let number = 0;
    return {
      swaps: [[directory, link]],
      async act() {
        const observed: string[] = [];
        await changeUserFile(join(directory, `config${number++ % 10}`), changing(observed));
        await changeUserFile(join(directory, `made${number++}/config`), changing(observed));
        return observed.join('');
      },
    };
  },
};

const sockets: AttackedPath = {
  place: 'sockets in device-plugins and pod-resources',
  changedBy: 'plugins in pods with a hostPath there',
  protectedBy: 'the mode is set by a handle of the socket and of nothing else',
  attack(arena): Attack {
    const { directory, link } = fileOf(arena);
    const socket = join(directory, 'kubelet.sock');
    return {
      swaps: [[socket, link]],
      async act() {
        for (const each of [socket, link]) rmSync(each, { force: true });
        symlinkSync(arena.canary.file, link);
        await using server = new GrpcServer();
        await server.listen(socket);
        return '';
      },
    };
  },
};

const checkpoints: AttackedPath = {
  place: 'checkpoint of device-plugins and others, read and replaced',
  changedBy: 'plugins in pods with a hostPath there',
  protectedBy: 'read without following links, and replaced by a new file whose mode is set by its handle',
  attack(arena): Attack {
    const { directory, path, link } = fileOf(arena);
    const files = realRuntimeFiles();
    return {
      swaps: [[`${directory}/*`, link]],
      async act() {
        rmSync(link, { force: true });
        symlinkSync(arena.canary.file, link);
        await files.replace(path, 'own\n', { mode: 0o644, survives: 'crash' });
        await writeFileAtomic(path, 'own\n', { mode: 0o644 });
        return String(await files.readEnd(path, 1_000));
      },
    };
  },
};

const inPlace: AttackedPath = {
  place: '/dev/termination-log, read back, and /etc/hosts of a pod, written in place',
  changedBy: 'the content by each container; the name by none, because only the file is mounted',
  protectedBy: 'opened without following a link; the mode is set by its handle',
  attack(arena): Attack {
    const { path, swaps } = fileOf(arena);
    const files = realRuntimeFiles();
    return {
      swaps,
      async act() {
        await files.write(path, 'own\n', 0o644);
        return String(await files.readEnd(path, 1_000));
      },
    };
  },
};

const nodeLogs: AttackedPath = {
  place: 'logs of the node at /logs/',
  changedBy: 'pods with a hostPath on /var/log',
  protectedBy:
    'each component is opened from the handle of its parent; links are resolved in kubeling, below the root only',
  attack(arena): Attack {
    const { directory, swaps } = fileOf(arena);
    const tree = createLogTree(directory);
    return {
      swaps,
      async act() {
        const found = await tree.inspect('config');
        let text = '';
        if (found.kind === 'file') for await (const chunk of found.chunks) text += Buffer.from(chunk);
        return text;
      },
    };
  },
};

const logLinks: AttackedPath = {
  place: 'links in /var/log/containers, created, checked and removed',
  changedBy: 'log collectors with a hostPath there',
  protectedBy:
    'a link is created, replaced or removed by its name, which follows no link; its target is only read',
  attack(arena): Attack {
    const { path, swaps } = fileOf(arena);
    const files = realRuntimeFiles();
    return {
      swaps,
      async act() {
        await files.exists(path);
        await files.link(join(arena.root, 'home/nowhere'), path);
        await files.remove(path);
        return String(await files.readLink(path));
      },
    };
  },
};

const rootOnly = 'none: every directory on the path is owned by root and closed to others';

/** Paths that are safe because no pod or user can change them. */
const closed: readonly AttackedPath[] = [
  {
    place: 'configMap, secret, projected and downwardAPI: the atomic writer',
    changedBy: `${rootOnly}; containers have them read-only`,
    protectedBy: 'test/local-api/volume-attacks.test.ts, CVE-2017-1002102',
  },
  {
    place: 'subPaths of volumes',
    changedBy: 'every container with the volume',
    protectedBy: 'handles; test/local-api/volume-attacks.test.ts, CVE-2021-25741',
  },
  {
    place: 'target and staging paths of CSI volumes, vol_data.json',
    changedBy: rootOnly,
    protectedBy: 'directories are removed only when they are empty, files by their name',
  },
  {
    place: 'checkpoint archives below checkpoints',
    changedBy: rootOnly,
    protectedBy: 'the directory has mode 0700',
  },
  {
    place: 'directories of emptyDir themselves: mode, group, quota',
    changedBy: rootOnly,
    protectedBy: 'created beside and renamed; a link at that path is rejected',
  },
  {
    place: 'sizes of directories with few files, such as logs',
    changedBy: 'as container logs',
    protectedBy: 'by path: names and sizes are counted, nothing is opened, written or returned by name',
  },
];

export const hostPaths: readonly AttackedPath[] = [
  context,
  contextDirectory,
  sockets,
  checkpoints,
  inPlace,
  nodeLogs,
  logLinks,
  ...closed,
];
