import { realClock } from '../../src/lib/index.ts';
import { HostVolumeFiles } from '../../src/volumes/index.ts';
import { killedPod, PayloadWorld, worldUid } from '../fakes/payload-world.ts';

/** Creates, updates and removes volumes in an endless loop until the test kills the process. */
const environment = new PayloadWorld(new HostVolumeFiles(realClock()), process.argv[2] ?? '', realClock());
const pod = killedPod();
process.stdout.write('begun\n');
for (let turn = 0; ; turn++) {
  const volumes = environment.volumes();
  for (let change = 0; change < 5; change++) {
    environment.setAll(`${turn}-${change}`);
    const problems = await volumes.prepare(pod, environment.signal);
    if (problems.length > 0) throw new Error(JSON.stringify(problems));
  }
  await volumes.remove(worldUid, environment.signal);
}
