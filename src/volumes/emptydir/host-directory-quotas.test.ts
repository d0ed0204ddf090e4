import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  firstProject,
  freeProject,
  isOurProject,
  lastProject,
  listedProjects,
  namedProjectsOf,
  projectsOf,
  reportedProjects,
} from './host-directory-quotas.ts';

test('derives the same project id for a directory each time unless that id is already used', () => {
  const wished = freeProject('/pods/a', new Set());
  assert.equal(freeProject('/pods/a', new Set([1, 2])), wished);
  assert.notEqual(freeProject('/pods/b', new Set()), wished);
  const second = freeProject('/pods/a', new Set([wished]));
  const third = freeProject('/pods/a', new Set([wished, second]));
  assert.equal(new Set([wished, second, third]).size, 3);
  for (const id of [wished, second, third]) assert.ok(isOurProject(id), String(id));
  for (const id of [0, 1, 1_048_577, firstProject - 1, lastProject + 1])
    assert.ok(!isOurProject(id), String(id));
});

test('reads only the project ids of the files /etc/projects and /etc/projid', () => {
  const projects =
    '# 7:/comment\n42:/srv/a\n  43:/srv/b:c\n:/x\nname:/y\n1048577:/var/lib/kubelet/pods/u/v\n';
  assert.deepEqual(projectsOf(projects), [42, 43, 1_048_577]);
  assert.deepEqual(namedProjectsOf('# a:7\nlogs:42\nvolume1048577:1048577\nodd\nbad:x\n'), [42, 1_048_577]);
});

test('reads the projects with files or limits from the output of repquota', () => {
  const report = `*** Report for project quotas on device /dev/vdb
Block grace time: 7days; Inode grace time: 7days
                        Block limits                File limits
Project         used    soft    hard  grace    used  soft  hard  grace
----------------------------------------------------------------------
#0        --      20       0       0              2     0     0
#1048577  --       4       0    1024              1     0     0
#1073741999 +-    4       2    1024  6days       1     0     0

`;
  assert.deepEqual(reportedProjects(report), [0, 1_048_577, 1_073_741_999]);
});

test('reads the project ids of directories from the output of lsattr, whatever characters the directory names contain', () => {
  const text =
    '    0 --------------e------- /pods/a\n 4242 -------------------P-- /pods/a b  c\nlsattr: no\n';
  assert.deepEqual(
    [...listedProjects(text)],
    [
      ['/pods/a', 0],
      ['/pods/a b  c', 4242],
    ],
  );
});
