import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, it } from 'node:test';
import { ownDirectory, StoreRig } from '../../../test/fakes/store-rig.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs, KubelingError } from '../../lib/index.ts';

/** Creates a store with a few hundred objects and closes it. */
async function filledStore(dir: { readonly path: string }): Promise<string> {
  const path = join(dir.path, 'api', 'objects.db');
  await using harness = await StoreRig.open(path);
  for (let index = 0; index < 300; index++) harness.put(`p${index}`, { data: 'z'.repeat(1_000) });
  return path;
}

function sql(path: string, text: string): void {
  const db = new DatabaseSync(path);
  db.exec(text);
  db.close();
}

async function refusalOf(path: string): Promise<KubelingError> {
  const error = await StoreRig.open(path).then(
    () => undefined,
    (thrown) => thrown,
  );
  assert.ok(error instanceof KubelingError, `it was not refused: ${error}`);
  return error;
}

async function assertRefused(path: string, code: string, why: RegExp): Promise<void> {
  const content = await readFile(path);
  const error = await refusalOf(path);
  assert.equal(error.code, code);
  assert.match(error.message, why);
  const copy = String(error.details['copy']);
  assert.match(
    error.message,
    /^Cannot open the store .*objects\.db as .*; it was left as it is, and a copy of it is /,
  );
  assert.ok(error.message.endsWith(copy));
  assert.deepEqual(await readFile(path), content, 'the file is as it was');
  assert.deepEqual(await readFile(copy), content, 'the copy is whole');
  assert.equal((await stat(copy)).mode & 0o777, 0o600);
}

describe('unusable store files', () => {
  it('a file that is not a database is rejected, and copied only once', async () => {
    await using dir = await ownDirectory();
    const path = join(dir.path, 'api', 'objects.db');
    await mkdir(dirname(path));
    await writeFile(path, 'this is not what was here before');
    await assertRefused(path, 'STORE_CORRUPT', /it is damaged: it does not begin as an SQLite database does/);
    await assertRefused(path, 'STORE_CORRUPT', /is damaged/);
    const files = await readdir(dirname(path));
    assert.equal(files.filter((name) => name.includes('refused')).length, 1);
    assert.ok(!files.includes('objects.db.lock'), 'nobody holds it');
  });

  it('a file with inconsistent pages is rejected', async () => {
    await using dir = await ownDirectory();
    const path = await filledStore(dir);
    const content = await readFile(path);
    await writeFile(path, content.fill(0xab, 8_192, 8_192 * 4));
    await assertRefused(path, 'STORE_CORRUPT', /it is damaged: /);
  });

  it('a truncated file is rejected', async () => {
    await using dir = await ownDirectory();
    const path = await filledStore(dir);
    const content = await readFile(path);
    await writeFile(path, content.subarray(0, content.length / 2));
    await assertRefused(path, 'STORE_CORRUPT', /it is damaged: /);
  });

  it('an empty file is rejected, with and without a write-ahead log', async () => {
    await using dir = await ownDirectory();
    const path = await filledStore(dir);
    await writeFile(path, '');
    await assertRefused(path, 'STORE_CORRUPT', /it is damaged: it is empty, and was not when it was made/);
    await writeFile(`${path}-wal`, 'written ahead');
    const copy = String((await refusalOf(path)).details['copy']);
    for (const file of [`${path}-wal`, `${copy}-wal`])
      assert.equal(await readFile(file, 'utf8'), 'written ahead', file);
  });

  it('a write-ahead log without its file is rejected', async () => {
    await using dir = await ownDirectory();
    const path = await filledStore(dir);
    await rm(path);
    await writeFile(`${path}-wal`, 'written ahead');
    const { code, message, details } = await refusalOf(path);
    assert.equal(code, 'STORE_CORRUPT');
    assert.match(
      message,
      /it is missing, though what was written ahead of it is there; it was left as it is/,
    );
    assert.equal(await readFile(`${details['copy']}-wal`, 'utf8'), 'written ahead');
    assert.equal(await readFile(`${path}-wal`, 'utf8'), 'written ahead');
    await using harness = await StoreRig.open(path, { existingStore: 'set-aside' });
    assert.equal(await readFile(`${harness.store.aside}-wal`, 'utf8'), 'written ahead');
  });

  it('an empty file does not prevent a new store when setting aside is requested', async () => {
    await using dir = await ownDirectory();
    const path = await filledStore(dir);
    await writeFile(path, '');
    await using harness = await StoreRig.open(path, { existingStore: 'set-aside' });
    await harness.write('a');
  });

  it('a store whose objects do not fit into memory is rejected, and opens with more memory', async () => {
    await using dir = await ownDirectory();
    const path = join(dir.path, 'api', 'objects.db');
    {
      await using harness = await StoreRig.open(path);
      await harness.write('large', { spec: { text: 'x'.repeat(2_000_000) } });
    }
    await assert.rejects(StoreRig.open(path, { maxObjectBytes: 1_000_000 }), {
      code: 'STORE_OPEN',
      message: /its objects take 2 MiB, and 1 MiB fit into .*NODE_OPTIONS=--max-old-space-size=4, and delete/,
    });
    await using harness = await StoreRig.open(path, { maxObjectBytes: 3_000_000 });
    assert.equal(harness.get('large')?.metadata.name, 'large');
  });

  it('a temporary file of an interrupted creation is replaced', async () => {
    await using dir = await ownDirectory();
    const path = join(dir.path, 'api', 'objects.db');
    await mkdir(dirname(path));
    await writeFile(`${path}.new`, 'half of it');
    await writeFile(`${path}.new-journal`, 'and what was to be undone');
    await using harness = await StoreRig.open(path);
    await harness.write('a');
    const left = (await readdir(dirname(path))).filter((name) => name.includes('.new'));
    assert.deepEqual(left, []);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  });

  it('a store with a value that is not an object is rejected', async () => {
    await using dir = await ownDirectory();
    const path = await filledStore(dir);
    sql(path, `UPDATE obj SET value = '{"metadata":' WHERE key = '/pods/default/p7'`);
    const { code, message, details } = await refusalOf(path);
    assert.equal((await refusalOf(path)).details['copy'], details['copy']);
    assert.equal(code, 'STORE_CORRUPT');
    assert.match(message, /the value of \/pods\/default\/p7 is not an object/);
  });

  it('a store written by a later version is rejected', async () => {
    await using dir = await ownDirectory();
    const path = await filledStore(dir);
    sql(path, 'PRAGMA user_version = 7');
    await assertRefused(
      path,
      'STORE_NEWER',
      /a later version of kubeling wrote it: its schema has version 7/,
    );
  });

  it('the database of another program is rejected', async () => {
    await using dir = await ownDirectory();
    const path = join(dir.path, 'api', 'objects.db');
    await mkdir(dirname(path));
    sql(path, 'CREATE TABLE songs (name TEXT)');
    await assertRefused(path, 'STORE_CORRUPT', /it is a database of something else/);
  });

  it('an unusable file is set aside on request, whatever it contains', async () => {
    await using dir = await ownDirectory();
    const path = await filledStore(dir);
    sql(path, 'PRAGMA user_version = 7');
    const content = await readFile(path);
    const clock = new VirtualClock();
    const { logger, records } = collectLogs(clock);
    await using harness = await StoreRig.open(path, { existingStore: 'set-aside', clock, logger });
    assert.equal(harness.store.restored.objects.length, 0);
    await harness.write('a');
    const aside = `${path}.set-aside-20260101T000000Z`;
    assert.equal(harness.store.aside, aside);
    assert.deepEqual(await readFile(aside), content);
    assert.deepEqual(
      [...records].map(({ message }) => message),
      ['Set the store aside and created a new one'],
    );
  });

  it('a missing file is not set aside on request', async () => {
    await using dir = await ownDirectory();
    const path = join(dir.path, 'api', 'objects.db');
    await using harness = await StoreRig.open(path, { existingStore: 'set-aside' });
    assert.equal(harness.store.aside, undefined);
    await harness.write('a');
    assert.deepEqual(
      (await readdir(dirname(path))).filter((name) => name.includes('aside')),
      [],
    );
  });

  it('a directory that cannot be created is reported', async () => {
    await using dir = await ownDirectory();
    await writeFile(join(dir.path, 'api'), '');
    await assert.rejects(StoreRig.open(join(dir.path, 'api', 'objects.db')), { code: 'STORE_OPEN' });
  });

  it('a file without tables from an interrupted creation becomes a new store', async () => {
    await using dir = await ownDirectory();
    const path = join(dir.path, 'api', 'objects.db');
    await mkdir(dirname(path));
    sql(path, 'PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL');
    await using harness = await StoreRig.open(path);
    await harness.write('a');
  });
});
