/**
 * Rotates the certificates of a node in use. usage: certificates.ts [--rotations N] [--signed-for
 * 10m]
 */
import { parseArgs } from 'node:util';
import { CertificateRounds } from './certificate-rounds.ts';
import { runScript } from './script-end.ts';

const { values } = parseArgs({
  options: { rotations: { type: 'string' }, 'signed-for': { type: 'string' } },
});
const rotations = Number(values.rotations ?? 3);
const signedFor = values['signed-for'] ?? '10m';
console.log(`${rotations} rotations of client and serving certificates that are signed for ${signedFor}`);

await runScript(async (interrupted) => {
  const report = await CertificateRounds.run({ rotations, signedFor, tell: console.log, interrupted });
  console.log(`
client certificates           ${report.client}
serving certificates          ${report.server}
looks at the files            ${report.looks}, each found a whole pair behind a link
requests                      ${report.requests}, the slowest took ${report.slowestMs.toFixed(0)} ms
lines of the followed log     ${report.lines}, none missing

no request failed, the followed log did not break, the node is clean`);
});
