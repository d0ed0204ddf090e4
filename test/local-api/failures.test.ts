import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { open, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import {
  createCertificate,
  type Identity,
  keyPem,
  newEcKey,
  readKeyPair,
  readPrivateKey,
} from '../../src/protocols/x509/index.ts';
import { type Answer, ApiCaller } from '../chaos/api-caller.ts';
import { eventually, KubelingNode } from '../kubeling-node.ts';

const command = promisify(execFile);
const image = 'localhost/kubeling/busybox:1';
const configMaps = '/api/v1/namespaces/default/configmaps';
const dayMs = 86_400_000;
/** The path of libfaketime on Debian; empty when it is not installed. */
const [fakeTime = ''] = globSync('/usr/lib/*/faketime/libfaketime.so.1');

async function fillUp(path: string): Promise<void> {
  const file = await open(path, 'w');
  try {
    for (const size of [1 << 20, 1 << 12]) {
      for (;;) {
        const { bytesWritten } = await file.write(Buffer.alloc(size)).catch(() => ({ bytesWritten: 0 }));
        if (bytesWritten < size) break;
      }
    }
  } finally {
    await file.close();
  }
}

function configMap(name: string, data: Readonly<Record<string, string>> = {}) {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data };
}

/**
 * The data directory is on a separate small disk, so that failures of the disk affect no other
 * program.
 */
describe('kubeling up when its disk, certificates, clock or store fail', { timeout: 400_000 }, () => {
  let node: KubelingNode;
  let containers: readonly string[] = [];

  before(async () => {
    const disk = { path: '' };
    node = await KubelingNode.open(async (dataDir) => {
      await command('mount', ['-t', 'tmpfs', '-o', 'size=80m,mode=0711', 'kubeling-trouble', dataDir]);
      disk.path = dataDir;
      return {};
    }).catch(async (error) => {
      await command('umount', [disk.path]);
      await rm(disk.path, { recursive: true, force: true });
      throw error;
    });
    const spec = {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: 'main', image, command: ['sleep', '100000'] }],
    };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'kept' }, spec };
    await ask('POST', '/api/v1/namespaces/default/pods', pod);
    await node.until('the pod to run', async () => (await runningContainers()).length === 1);
    containers = await runningContainers();
  });

  after(async () => {
    await node.end('SIGTERM');
    const reported = await node.command('down');
    await command('umount', [node.dataDir]).catch((error) => assert.fail(`${error}\n${reported}`));
    assert.deepEqual(await node.leave(), []);
  });

  /** Sends a request with the current kubeconfig of the node. */
  async function ask(method: string, path: string, body?: object): Promise<Answer> {
    using api = await ApiCaller.open(join(node.dataDir, 'kubeconfig'));
    return await api.call(method, path, body);
  }

  async function runningContainers(): Promise<readonly string[]> {
    const all = await node.containersOf('kept');
    return all.filter(({ state }) => state === 'CONTAINER_RUNNING').map(({ id }) => id);
  }

  it('keeps running while the disk is full, returns errors to API writers, and accepts writes again when there is space', async () => {
    const filler = join(node.dataDir, 'filler');
    await fillUp(filler);
    try {
      const refused = await eventually('a write to be rejected', async () => {
        const response = await ask('POST', configMaps, configMap(`full-${performance.now()}`));
        return response.status >= 500 ? response : undefined;
      });
      assert.equal(refused.status, 503);
      assert.match(String(refused.body['message']), /no room is left on its disk/);
      assert.equal((await ask('GET', configMaps)).status, 200);
      assert.match(await node.command('status'), /^api .*no room is left on its disk/m);
    } finally {
      await rm(filler);
    }
    const name = await eventually('a write to be accepted', async () => {
      const name = `room-${Math.floor(performance.now())}`;
      return (await ask('POST', configMaps, configMap(name))).status === 201 ? name : undefined;
    });
    await node.end('SIGKILL');
    await node.start();
    assert.equal((await ask('GET', `${configMaps}/${name}`)).status, 200);
    assert.deepEqual(await runningContainers(), containers);
  });

  it('reports a full disk as the reason when it cannot start', async () => {
    await node.end('SIGTERM');
    const filler = join(node.dataDir, 'filler');
    await fillUp(filler);
    const said = node.out.length;
    try {
      node.launch();
      await node.until('it to exit', async () => node.exitCode !== null);
    } finally {
      await rm(filler);
    }
    assert.equal(node.exitCode, 1);
    assert.match(node.out.slice(said), /^kubeling up: Cannot .*(no space left|no room is left)/im);
    await node.start();
    assert.deepEqual(await runningContainers(), containers);
  });

  it('renews certificates that have expired or will expire soon', async () => {
    await node.end('SIGTERM');
    const pki = join(node.dataDir, 'api', 'pki');
    const now = Date.now();
    await reissue(pki, 'serving', [now - 20 * dayMs, now - dayMs]);
    await reissue(pki, 'admin', [now - 300 * dayMs, now + 5 * dayMs]);
    await reissue(pki, 'node', [now - 20 * dayMs, now - dayMs]);
    await node.start();
    for (const who of ['serving', 'admin', 'node']) {
      const text = await readFile(join(pki, `${who}.pem`), 'utf8');
      const { leaf } = readKeyPair({ certificate: text, key: text, from: who });
      assert.ok(leaf.notAfterMs > now + 300 * dayMs, `${who} expires at ${leaf.notAfterMs}`);
    }
    assert.equal((await ask('GET', configMaps)).status, 200);
    assert.deepEqual(await runningContainers(), containers);
  });

  it('recovers when the clock of the machine was ahead and is set back', {
    skip: fakeTime === '' ? 'needs libfaketime, which the set-up installs on Debian only' : false,
  }, async () => {
    for (const offset of ['+400d', '+0']) {
      await node.end('SIGTERM');
      node.change({
        LD_PRELOAD: fakeTime,
        FAKETIME: offset,
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
        NO_FAKE_STAT: '1',
      });
      await node.start();
      assert.deepEqual(await runningContainers(), containers);
    }
    node.change({ LD_PRELOAD: '' });
    // Waits until the API server trusts the kubelet's certificate again.
    const pods = `/api/v1/nodes/${hostname().toLowerCase()}/proxy/pods`;
    await node.until('the kubelet to be reachable', async () => (await ask('GET', pods)).status === 200);
    assert.equal((await ask('GET', configMaps)).status, 200);
  });

  it('exits with a clear message when its store is damaged while it runs', async () => {
    // Writes more data than SQLite's page cache holds, so that a damaged page is read again.
    const filling = 'x'.repeat(200_000);
    for (let index = 0; index < 20; index++)
      assert.equal((await ask('POST', configMaps, configMap(`c${index}`, { filling }))).status, 201);
    const path = join(node.dataDir, 'api', 'store', 'objects.db');
    const good = await consistentCopy(path);
    await Promise.all([overwrite(path), overwrite(`${path}-wal`)]);
    const said = node.out.length;
    for (let index = 0; node.exitCode === null && index < 20; index++)
      await ask('PATCH', `${configMaps}/c${index}`, { data: { filling: 'y' } }).catch(() => {});
    await node.until('it to exit', async () => node.exitCode !== null);
    assert.equal(node.exitCode, 1);
    assert.match(node.out.slice(said), /^kubeling up: Cannot write to the store .*objects\.db as /m);
    assert.deepEqual(await runningContainers(), containers);
    await writeFile(path, good[0]);
    await writeFile(`${path}-wal`, good[1]);
    await node.start();
    assert.equal((await ask('GET', `${configMaps}/c0`)).status, 200);
  });
});

/**
 * Reads the database and its write-ahead log until two reads are equal, because a checkpoint may
 * move pages between them.
 */
async function consistentCopy(path: string): Promise<readonly [Buffer, Buffer]> {
  const read = async () => [await readFile(path), await readFile(`${path}-wal`)] as const;
  let last = await read();
  return await eventually('an unchanged store', async () => {
    const next = await read();
    const isSame = next.every((file, index) => last[index]?.equals(file));
    last = next;
    return isSame ? next : undefined;
  });
}

/** Replaces a certificate with one for the same name and another validity period. */
async function reissue(
  pki: string,
  who: string,
  [notBeforeMs, notAfterMs]: readonly [number, number],
): Promise<void> {
  const read = async (name: string) => {
    const text = await readFile(join(pki, `${name}.pem`), 'utf8');
    return readKeyPair({ certificate: text, key: text, from: name });
  };
  const [authority, { leaf }] = [await read('ca'), await read(who)];
  const key = newEcKey();
  const issuerKey = readPrivateKey(authority.keyPem);
  assert.ok(issuerKey !== undefined);
  const certificate = createCertificate(
    {
      identity: leaf satisfies Identity,
      key,
      notBeforeMs,
      notAfterMs,
      uses: ['digital-signature'],
      extendedUses: [who === 'serving' ? 'server-auth' : 'client-auth'],
      role: 'leaf',
    },
    { subject: authority.leaf, key: issuerKey },
  );
  await writeFile(join(pki, `${who}.pem`), certificate + keyPem(key));
}

/** Overwrites a file with garbage of the same size, as a disk that loses written data. */
async function overwrite(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    const { size } = await file.stat();
    await file.write(Buffer.alloc(size, 0xab), 0, size, 0);
  } finally {
    await file.close();
  }
}
