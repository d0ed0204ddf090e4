import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { containerAt, type OomKill, OomParser } from './oom-parser.ts';

const id = 'c5'.repeat(32);
const uid = '11111111-aaaa-4bbb-8ccc-000000000001';

function killsIn(...lines: readonly string[]): readonly OomKill[] {
  const parser = new OomParser();
  return lines.flatMap((line) => parser.take(line) ?? []);
}

const begin = 'stress invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=999';

describe('OOM lines of the kernel log', () => {
  it('parses an OOM kill by a cgroup limit', () => {
    const line = `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=${id},mems_allowed=0,oom_memcg=/kubepods/pod${uid},task_memcg=/kubepods/pod${uid}/${id},task=stress, really,pid=4242,uid=0`;
    const again = 'Memory cgroup out of memory: Killed process 4242 (stress) total-vm:1kB';
    assert.deepEqual(killsIn('usb 1-1: new device', begin, 'Call Trace:', line, again), [
      {
        cgroup: `/kubepods/pod${uid}`,
        victimCgroup: `/kubepods/pod${uid}/${id}`,
        process: 'stress, really',
        pid: 4242,
      },
    ]);
  });

  it('parses a system OOM kill', () => {
    const line =
      'oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/system.slice/x,task=x,pid=7,uid=0';
    assert.deepEqual(killsIn(begin, line), [
      { cgroup: '/', victimCgroup: '/system.slice/x', process: 'x', pid: 7 },
    ]);
  });

  it('combines the two OOM lines of older kernels to one kill', () => {
    const place = 'Task in /kubepods/pod1/abc killed as a result of limit of /kubepods/pod1';
    const killed = 'Killed process 99 (ruby (worker)) total-vm:1kB, anon-rss:1kB';
    assert.deepEqual(killsIn(begin, place, killed, begin, killed), [
      { cgroup: '/kubepods/pod1', victimCgroup: '/kubepods/pod1/abc', process: 'ruby (worker)', pid: 99 },
      { cgroup: '/', victimCgroup: '/', process: 'ruby (worker)', pid: 99 },
    ]);
  });

  it('ignores kernel log lines of other subsystems', () => {
    assert.deepEqual(killsIn('Killed process 1 (by hand)', 'oom-kill:constraint=x'), []);
  });
});

describe('the container of a cgroup', () => {
  it('parses the pod and container of a cgroup with either driver', () => {
    const slice = `kubepods-burstable-pod${uid.replaceAll('-', '_')}.slice`;
    const paths = [
      `/kubepods/burstable/pod${uid}/${id}`,
      `/home/kubepods/pod${uid}/${id}/child`,
      `/kubepods.slice/kubepods-burstable.slice/${slice}/cri-containerd-${id}.scope`,
      `/kubepods.slice/kubepods-burstable.slice/${slice}/crio-${id}.scope`,
    ];
    for (const path of paths) assert.deepEqual(containerAt(path), { uid, id }, path);
    for (const path of ['/', `/system.slice/docker-${id}.scope`, `/kubepods/pod${uid}`])
      assert.equal(containerAt(path), undefined, path);
  });
});
