import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSelinuxFacts } from './selinux-facts.ts';

const machine = (files: Readonly<Record<string, string>>) => async (path: string) => files[path];
const on = { '/sys/fs/selinux/enforce': '0' };

test('a machine without SELinux has no contexts', async () => {
  assert.equal(await readSelinuxFacts(machine({ '/etc/selinux/config': 'SELINUXTYPE=targeted' })), undefined);
});

test('the files of containers have the context that the policy says', async () => {
  const config = { '/etc/selinux/config': '# SELINUXTYPE= can be\n#SELINUXTYPE=no\nSELINUXTYPE=mls \n' };
  const contexts =
    'process = "system_u:system_r:container_t:s0"\nfile = "system_u:object_r:svirt_file_t:s0"\n';
  const facts = await readSelinuxFacts(
    machine({ ...on, ...config, '/etc/selinux/mls/contexts/lxc_contexts': contexts }),
  );
  assert.deepEqual(facts, { fileContext: 'system_u:object_r:svirt_file_t:s0' });
});

test('a policy that says nothing of containers leaves the usual context', async () => {
  const usual = { fileContext: 'system_u:object_r:container_file_t:s0' };
  assert.deepEqual(await readSelinuxFacts(machine(on)), usual);
  const odd = { '/etc/selinux/config': 'SELINUXTYPE=../../etc\n' };
  assert.deepEqual(await readSelinuxFacts(machine({ ...on, ...odd })), usual);
});
