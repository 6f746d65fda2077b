package dashboard

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// object is an object in JSON. Its members are written in the order of their names.
type object = map[string]any

// source is the data source that the reader chooses.
var source = object{"type": "prometheus", "uid": "${datasource}"}

// JSON returns the dashboard in the format of Grafana 11 and newer, for its import and
// for provisioning. The identifier of the dashboard is left to Grafana.
func JSON() ([]byte, error) {
	data, err := json.MarshalIndent(object{
		"title":         "petstore",
		"description":   "The pets server: traffic, limits, engine, Redis, database and process. reference/docs/OPERATING.md says what to do about what it shows.",
		"tags":          []string{"petstore", "gatehouse"},
		"schemaVersion": 39,
		"editable":      true,
		"graphTooltip":  1, // one cross-hair in all panels
		"refresh":       "30s",
		"timezone":      "browser",
		"time":          object{"from": "now-3h", "to": "now"},
		"templating":    object{"list": variables()},
		"annotations":   object{"list": []object{starts()}},
		"links": []object{{
			"title": "Operating guide", "type": "link", "icon": "doc", "tooltip": "", "tags": []string{},
			"targetBlank": true, "asDropdown": false, "includeVars": false, "keepTime": false,
			"url": "https://github.com/animalstore/gatehouse/blob/main/reference/docs/OPERATING.md",
		}},
		"panels": panels(),
	}, "", "  ")
	return append(data, '\n'), err
}

func variables() []object {
	fromLabel := func(name, label, query string) object {
		return object{
			"name": name, "label": label, "type": "query", "datasource": source,
			"query":      object{"query": query, "refId": name},
			"definition": query, "refresh": 2, "sort": 1,
		}
	}
	job := fromLabel("job", "Job", "label_values(petstore_ready, job)")
	instance := fromLabel("instance", "Server", `label_values(petstore_ready{job="$job"}, instance)`)
	instance["multi"], instance["includeAll"] = true, true
	instance["current"] = object{"text": []string{"All"}, "value": []string{"$__all"}}
	return []object{
		{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
		job, instance,
	}
}

// starts marks the starts of servers in all panels.
func starts() object {
	return object{
		"name": "Starts", "datasource": source, "enable": true, "iconColor": "blue",
		"expr":        "changes(" + of("process_start_time_seconds") + "[$__interval]) > 0",
		"titleFormat": "{{instance}} started", "step": "30s",
	}
}

const (
	columns    = 24
	statHeight = 4
	height     = 8
)

// panels lays the rows out from top to bottom, and their panels from left to right.
func panels() []object {
	var all []object
	y := 0
	for _, r := range rows() {
		all = append(all, object{
			"id": len(all) + 1, "type": "row", "title": r.title, "collapsed": false, "panels": []object{},
			"gridPos": object{"x": 0, "y": y, "w": columns, "h": 1},
		})
		y++
		x, h := 0, 0
		for _, p := range r.panels {
			if x+p.width > columns {
				x, y, h = 0, y+h, 0
			}
			own := height
			if p.stat {
				own = statHeight
			}
			o := p.object()
			o["id"] = len(all) + 1
			o["gridPos"] = object{"x": x, "y": y, "w": p.width, "h": own}
			all = append(all, o)
			x, h = x+p.width, max(h, own)
		}
		y += h
	}
	return all
}

func rows() []row {
	return slices.Concat(trafficRows(), limitRows(), serverRows())
}

// object returns the panel without its place.
func (p panel) object() object {
	o := object{
		"type": "timeseries", "title": p.title, "description": p.description, "datasource": source,
		"fieldConfig": object{"defaults": p.defaults(), "overrides": p.overrides()},
		"options": object{
			"legend":  object{"displayMode": "table", "placement": "right", "calcs": []string{"lastNotNull", "max"}, "showLegend": true},
			"tooltip": object{"mode": "multi", "sort": "desc"},
		},
	}
	if p.stat {
		o["type"] = "stat"
		o["options"] = object{
			"reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
			"colorMode":     "value", "graphMode": "area", "justifyMode": "auto", "orientation": "auto", "textMode": "auto",
		}
	}
	targets := make([]object, len(p.queries))
	for i, q := range p.queries {
		targets[i] = object{
			"refId": string(rune('A' + i)), "datasource": source, "editorMode": "code",
			"expr": q.expr, "legendFormat": q.legend, "range": true,
		}
	}
	o["targets"] = targets
	return o
}

func (p panel) defaults() object {
	d := object{
		"unit": p.unit, "min": 0, "mappings": p.mappings(),
		"color":      object{"mode": "palette-classic"},
		"thresholds": object{"mode": "absolute", "steps": p.steps()},
	}
	if p.most > 0 {
		d["max"] = p.most
	}
	if p.unit == count { // increase() is rarely a whole number
		d["decimals"] = 0
	}
	if p.none != "" {
		d["noValue"] = p.none
	}
	if p.stat {
		d["color"] = object{"mode": "thresholds"}
		return d
	}
	stacking, fill, lines := "none", 5, "off"
	if p.stack {
		stacking, fill = "normal", 30
	}
	if p.warning > 0 || p.critical > 0 {
		lines = "dashed"
	}
	d["custom"] = object{
		"drawStyle": "line", "lineWidth": 1, "fillOpacity": fill, "showPoints": "never", "spanNulls": false,
		"stacking":        object{"mode": stacking, "group": "A"},
		"thresholdsStyle": object{"mode": lines},
	}
	return d
}

// steps returns from which value on which colour is shown. The first step has no value.
func (p panel) steps() []object {
	names, values := []string{"green", "orange", "red"}, []float64{p.warning, p.critical}
	if p.low {
		names, values = []string{"red", "orange", "green"}, []float64{p.critical, p.warning}
	}
	steps := []object{{"color": names[0], "value": nil}}
	for i, v := range values {
		if v > 0 {
			steps = append(steps, object{"color": names[i+1], "value": v})
		}
	}
	return steps
}

func (p panel) mappings() []object {
	if len(p.texts) == 0 {
		return []object{}
	}
	options := object{}
	for value, text := range p.texts {
		index, _ := strconv.Atoi(value)
		options[value] = object{"text": text, "index": index}
	}
	return []object{{"type": "value", "options": options}}
}

// overrides gives lines the colours of their names.
func (p panel) overrides() []object {
	all := []object{}
	if !p.coloured {
		return all
	}
	for _, name := range slices.Sorted(maps.Keys(colours)) {
		all = append(all, object{
			"matcher":    object{"id": "byName", "options": name},
			"properties": []object{{"id": "color", "value": object{"mode": "fixed", "fixedColor": colours[name]}}},
		})
	}
	return all
}
