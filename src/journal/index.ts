/**
 * Histories in memory: the flight recorder has the steps and events of each pod, the node journal
 * the events of the node.
 */
export { explainNode, explainPod } from './explain.ts';
export { FlightRecorder, type PodStory, type StoryEntry } from './flight-recorder.ts';
export { type NodeEntry, type NodeEvent, NodeJournal, type NodeStory } from './node-journal.ts';
