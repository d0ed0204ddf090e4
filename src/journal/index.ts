/** What happened to each pod and to the node, in memory: the flight recorder of pods and the journal of the node. */
export { explainNode, explainPod } from './explain.ts';
export { FlightRecorder, type PodStory, type StoryEntry } from './flight-recorder.ts';
export { type NodeEntry, type NodeEvent, NodeJournal, type NodeStory } from './node-journal.ts';
